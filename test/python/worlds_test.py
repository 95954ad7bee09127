"""Worlds that other programs start, and arrays of other libraries."""

import os
import pathlib
import sys

import numpy as np
import pytest
from launch import HERE, run

import flux
from flux import _flux


def test_flux_launch():
    flux_cli = pathlib.Path(os.environ.get("FLUX_CLI", "flux"))
    if not flux_cli.exists():
        pytest.skip("no flux command; ctest says where it is")
    said = run([flux_cli, "launch", "-n", "3", "--", sys.executable, HERE / "worlds.py", "launcher"])
    assert all(f"rank {rank} is right" in said for rank in range(3))


def test_mpirun():
    if not _flux.facts()["mpi"]:
        with pytest.raises(flux.UnsupportedError):
            flux.World.from_mpi()
        return
    said = run(["mpirun", "-n", "3", sys.executable, HERE / "worlds.py", "mpi"], OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_plm_rsh_agent="")
    assert all(f"rank {rank} is right" in said for rank in range(3))


def test_torchrun():
    pytest.importorskip("torch")
    said = run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=3", HERE / "worlds.py", "launcher"])
    assert all(f"rank {rank} is right" in said for rank in range(3))


def test_a_launcher_is_missing():
    with pytest.raises(flux.InvalidError, match="FLUX_"):
        flux.World.from_launcher()


def test_the_example():
    assert "right on 4 ranks" in run([sys.executable, HERE.parents[1] / "examples/python_numpy.py"])


def test_jax_by_dlpack():
    numpy = pytest.importorskip("jax.numpy")
    x, w = numpy.ones((4, 8)), numpy.ones((8, 8))
    for y in flux.run(flux.World.local(2), lambda world: flux.all_gather_gemm(world, x, w)):
        np.testing.assert_array_equal(y, np.full((8, 8), 8, np.float32))
    z = flux.run(flux.World.local(2), lambda world: flux.gemm_all_reduce(world, x.astype("bfloat16"), w.astype("bfloat16")))
    np.testing.assert_array_equal(np.asarray(z[0], np.float32), np.full((4, 8), 16))
    out = numpy.zeros((8, 8))
    with pytest.raises(flux.InvalidError, match="the output is an array of JAX"):
        flux.run(flux.World.local(2), lambda world: flux.all_gather_gemm(world, x, w, out=out))


def test_cupy_on_gpus():
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available() or not _flux.facts()["gpus"]:
        pytest.skip("no GPU that both can use")
    x, w = cupy.ones((4, 64), "float16"), cupy.ones((64, 64), "float16")
    for y in flux.run(flux.World.local(2, "shared_gpu"), lambda world: flux.all_gather_gemm(world, x, w)):
        assert bool((y == 64).all())


def test_a_world_needs_a_group():
    torch = pytest.importorskip("torch")
    with pytest.raises(flux.InvalidError, match="not initialised"):
        flux.World.from_torch()
    (world,) = flux.World.local(1)
    with pytest.raises(flux.InvalidError, match=r"a matrix \[rows, columns\] is needed"):
        flux.all_gather_gemm(world, torch.ones(2, 2, 8), torch.ones(8, 8))
    with pytest.raises(flux.InvalidError, match="elements of a row 2 apart"):
        flux.gemm_all_reduce(world, torch.ones(2, 16)[:, ::2], torch.ones(8, 8))
