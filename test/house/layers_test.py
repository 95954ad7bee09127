"""The layers: who may include whom, and where CUDA, assembler and kernel launches may stand."""

import re

import pytest
from repository import CODE, code, files, includes, room

SOURCES = [path for path in files(*CODE) if path.parts[0] in ("src", "include", "cli", "bench", "examples", "test")]
ROOMS = {room(path) for path in files(*CODE) if path.parts[0] == "src"} | {"flux"}
CUDA_HEADER = re.compile(r"(cuda|cute/|cutlass/|cub/|nccl|cublas|cooperative_groups|mma\.h|nvtx)")
CUDA_PLACES = ("src/engine/sm", "src/engine/ptx/", "src/engine/epilogue.h", "src/kernel/", "src/world/cuda", "bench/", "test/gpu/",
               "examples/cutlass_")


def ours(path):
    """Those included headers that are ours."""
    return [name for name in includes(path) if room(name) in ROOMS]


def broken(paths, rule):
    """Lines "file: what it does" for each path and each thing that `rule` objects to."""
    return [f"{path}: {objection}" for path in paths for objection in rule(path)]


def in_rooms(*names):
    return [path for path in SOURCES if path.parts[0] == "src" and room(path).split("/")[0] in names]


def test_tile_includes_nothing_of_ours_and_no_cuda():
    assert not broken(in_rooms("tile"), lambda path: [
        name for name in includes(path)
        if (room(name) in ROOMS and room(name) != "tile") or CUDA_HEADER.match(name)])


def test_the_host_device_switch_stands_in_signal_alone():
    others = [path for path in in_rooms("tile") if path.name != "signal.h"]
    assert not broken(others, lambda path: re.findall(r"__CUDA\w+__|__host__|__device__", code(path)))


def test_engines_know_neither_each_other_nor_world_plan_op():
    def objections(path):
        own = room(path)
        for name in ours(path):
            other = room(name)
            sibling = other.startswith("engine/") and other not in (own, "engine/ptx")
            if sibling or other in ("world", "plan", "op"):
                yield name

    assert not broken(in_rooms("engine"), objections)


def test_cuda_headers_only_where_kernels_live():
    assert not broken([path for path in SOURCES if not str(path).startswith(CUDA_PLACES)], lambda path: [
        name for name in includes(path) if CUDA_HEADER.match(name)])


def test_the_public_door_includes_only_itself():
    assert not broken([path for path in SOURCES if path.parts[0] == "include"], lambda path: [
        name for name in ours(path) if not name.startswith("flux/")])


def test_plan_is_pure():
    """Whatever a plan depends on comes in as a value: no world, no threads, no look at this machine. A simulated call
    leaves as a timeline, a value too."""
    def objections(path):
        for name in includes(path):
            impure = name in ("thread", "unistd.h", "dlfcn.h") or name.startswith("sys/")
            foreign = room(name) in ROOMS and room(name).split("/")[0] not in ("plan", "tile", "engine", "flux", "io", "trace")
            if impure or foreign:
                yield name

    assert not broken(in_rooms("plan"), objections)


def test_assembler_only_in_ptx_and_signal():
    others = [path for path in SOURCES
              if not str(path).startswith("src/engine/ptx/") and str(path) != "src/tile/signal.h"]
    assert not broken(others, lambda path: re.findall(r"\b(?:asm|__asm__)\b\s*(?:volatile)?\s*\(", code(path)))


def test_kernels_are_launched_in_kernel_alone():
    launch = re.compile(r"<<<|\b(?:cudaLaunch|cuLaunch)\w*\s*\(")
    others = [path for path in SOURCES if path.parts[0] == "src" and room(path) != "kernel"]
    assert not broken(others, lambda path: launch.findall(code(path)))


def test_no_file_includes_torch():
    assert not broken(files(*CODE), lambda path: [
        name for name in includes(path) if re.match(r"(torch|ATen|c10)/", name)])


@pytest.mark.parametrize("name", ["tile/place.h", "flux/error.h"])
def test_the_rules_see_the_tree(name):
    """A rule that reads no file would hold for ever."""
    assert any(name in includes(path) for path in SOURCES)
