"""What torchrun starts: worlds of groups, several at once, gradients, and operators compiled among ranks or in a CUDA graph."""

import sys

import place
import pytest
import torch
import torch.distributed as dist

import flux
from flux import torch_ops


def check_groups():
    """Each rank in two worlds of two at once, whose calls alternate."""
    rank = dist.get_rank()
    rows = [dist.new_group(pair) for pair in ([0, 1], [2, 3])]
    columns = [dist.new_group(pair) for pair in ([0, 2], [1, 3])]
    across, down = (flux.World.from_torch(group, place.ON, limit_seconds=60) for group in (rows[rank // 2], columns[rank % 2]))
    assert (across.rank, across.size, down.rank, down.size) == (rank % 2, 2, rank // 2, 2)
    x, w = torch.full((3, 8), float(rank), dtype=place.DTYPE), torch.ones(16, 8, dtype=place.DTYPE)
    for _ in range(5):
        assert flux.gemm_all_reduce(across, x, w).eq(8 * (4 * (rank // 2) + 1)).all()
        assert flux.gemm_all_reduce(down, x, w).eq(8 * (2 * (rank % 2) + 2)).all()
        y = flux.all_gather_gemm(across, x, w)
        wanted = torch.tensor([rank // 2 * 2] * 3 + [rank // 2 * 2 + 1] * 3) * 8
        assert y.shape == (6, 16) and y.eq(wanted[:, None]).all()
    with pytest.raises(flux.InvalidError, match=f"rank {rank} is not in the group given"):
        flux.World.from_torch(rows[1 - rank // 2])
    with pytest.raises(flux.InvalidError, match="allowed are cpu, cuda"):
        flux.World.from_torch(rows[rank // 2], device="meta")


def check_gradients(world, dtype, bound, m=11, n=48, k=32):
    """Each operator's result and gradients beside those of the whole product in fp64; rows do not divide."""
    torch.manual_seed(1)
    whole = [torch.randn(shape, dtype=dtype) for shape in [(m, k), (n, k), (n,)]]
    rows, by_n, by_k = (slice(first, first + count) for first, count in (world.rows(m), world.columns(n), world.columns(k)))
    every = slice(None)
    cases = {  # this rank's part of x, w, b and y
        torch_ops.all_gather_gemm: ((rows, every), (by_n, every), by_n, (every, by_n)),
        torch_ops.column_linear: ((every, every), (by_n, every), by_n, (every, by_n)),
        torch_ops.gemm_reduce_scatter: ((every, by_k), (every, by_k), every, (rows, every)),
        torch_ops.gemm_all_reduce: ((every, by_k), (every, by_k), every, (every, every))}
    for operator, (*places, of_y) in cases.items():
        mine = [t[at].clone().requires_grad_() for t, at in zip(whole, places)]
        more = {"m": m} if operator is torch_ops.all_gather_gemm else {}
        y = operator(*mine, world=world, **more)
        exact = [t.double().requires_grad_() for t in whole]
        wanted = exact[0] @ exact[1].t() + exact[2]
        assert place.error(y, wanted[of_y]) < bound, (operator, dtype)
        slope = torch.randn(wanted.shape, dtype=dtype)
        found = torch.autograd.grad(y, mine, slope[of_y])
        for a, b, at in zip(found, torch.autograd.grad(wanted, exact, slope.double()), places):
            assert place.error(a, b[at]) < bound, (operator, dtype)


def mlp_of(world, m):
    def mlp(x, up, down):
        hidden = torch.nn.functional.silu(torch_ops.all_gather_gemm(x, up, world=world, m=m))
        return torch_ops.gemm_reduce_scatter(hidden, down, world=world)

    return mlp


def check_compiled(world):
    """Forwards and backwards with no break in the graph, rows that do not divide among them, as without a compiler."""
    mlp = mlp_of(world, 10)
    torch.manual_seed(2 + world.rank)
    leaves = [torch.randn(shape, dtype=place.DTYPE, requires_grad=True) for shape in [(world.rows(10)[1], 16), (32, 16), (16, 32)]]
    found, wanted = ((y := f(*leaves), *torch.autograd.grad(y.square().sum(), leaves))
                     for f in (torch.compile(mlp, fullgraph=True, backend="aot_eager"), mlp))
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b)


def check_graph(world, m=10):
    """A CUDA graph of several calls, replayed between eager ones, goes by what its input holds then."""
    mlp = mlp_of(world, m)
    torch.manual_seed(3 + world.rank)
    x, up, down = (torch.randn(shape, dtype=place.DTYPE) for shape in [(world.rows(m)[1], 16), (32, 16), (16, 32)])
    with torch.no_grad():
        mlp(x, up, down)  # makes the operators
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = mlp(x, up, down)
        for number in range(5):
            x.normal_()
            graph.replay()
            for _ in range(number % 3):
                wanted = mlp(x, up, down)
            wanted = mlp(x, up, down)
            assert torch.equal(y, wanted) and y.isfinite().all() and y.norm() > 0, number
    torch.cuda.synchronize()
    dist.barrier(world.group)


def check_other_calls(world):
    """Ranks that make different calls all learn of it, on GPUs when they look; a world made anew works."""
    w = torch.ones(8, 8, dtype=place.DTYPE)
    with pytest.raises(flux.TimeoutError, match="different calls"):
        flux.gemm_all_reduce(world, torch.ones(2 + world.rank, 8, dtype=place.DTYPE), w)
        if place.CUDA:
            torch.cuda.synchronize()
        world.check()
    dist.barrier()
    again = flux.World.from_torch(device=place.ON, limit_seconds=60)
    assert flux.gemm_all_reduce(again, torch.ones(2, 8, dtype=place.DTYPE), w).eq(8 * world.size).all()


def main():
    place.start()
    if dist.get_world_size() == 4:
        check_groups()
    world = flux.World.from_torch(device=place.ON, limit_seconds=60)
    for dtype, bound in [(torch.float16, 3e-3), (torch.bfloat16, 2e-2)] + ([] if place.CUDA else [(torch.float32, 1e-5)]):
        check_gradients(world, dtype, bound)
    check_compiled(world)
    if place.CUDA:
        check_graph(world)
    check_other_calls(world)
    del world
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
