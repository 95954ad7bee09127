"""AG+GEMM and GEMM+RS on four ranks of this process, on NumPy arrays."""

import numpy as np

import flux


def mlp(world):
    rows, inner = world.rows(100)[1], world.columns(192)[1]  # 100 rows over 4 ranks
    x, up, down = np.full((rows, 64), 0.5), np.full((inner, 64), 0.1), np.full((64, inner), 0.01)
    hidden = flux.all_gather_gemm(world, x, up, m=100, activation="relu")
    return flux.gemm_reduce_scatter(world, hidden, down)


y = np.concatenate(flux.run(flux.World.local(4), mlp))
assert np.allclose(y, 192 * 0.01 * 64 * 0.5 * 0.1), y
print("python_numpy: right on 4 ranks")
