"""What ptxas reported of every kernel, kept beside its object: nothing may spill or need a stack."""

import os
import pathlib
import re

import pytest

PROPERTIES = re.compile(
    r"Function properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def reports():
    build = pathlib.Path(os.environ["FLUX_BUILD_DIR"])
    # Not the kernel of CUTLASS in examples/cutlass_gemm.cu, whose loading warp has 40 registers for our wait too.
    return [path for path in build.rglob("*.ptxas") if path.with_suffix("").exists() and "cutlass_gemm" not in path.name]


def test_no_kernel_spills_or_needs_a_stack():
    if not reports():
        pytest.skip("no kernels in this build")
    needy = [f"{path.name}: {name} has {stack} bytes of stack, spills {stores} and {loads} bytes"
             for path in reports() for name, stack, stores, loads in PROPERTIES.findall(path.read_text())
             if (stack, stores, loads) != ("0", "0", "0")]
    assert not needy


def test_every_kernel_is_reported():
    """A report without these lines would pass above for ever."""
    for path in reports():
        text = path.read_text()
        kernels = re.findall(r"Compiling entry function '(\w+)'", text)
        assert sorted(set(kernels)) == sorted({name for name, *_ in PROPERTIES.findall(text)} & set(kernels)), path
