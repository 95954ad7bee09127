"""A rank that `flux launch` or torchrun (launcher) or mpirun (mpi) started; torch has no group."""

import sys

import numpy as np

import flux

world = flux.World.from_mpi(limit_seconds=30) if sys.argv[1] == "mpi" else flux.World.from_launcher(limit_seconds=30)
assert world.size == 3 and world.kind == "processes"
y = flux.gemm_all_reduce(world, np.full((2, 8), world.rank + 1.0), np.ones((8, 8)))
assert np.array_equal(y, np.full((2, 8), 8 * 6.0)), y
rows = flux.all_gather_gemm(world, np.ones((world.rows(7)[1], 8)), np.ones((8, 8)), m=7)
assert np.array_equal(rows, np.full((7, 8), 8.0)), rows
world.barrier()
print(f"rank {world.rank} is right")
