"""What torchrun starts on four ranks: worlds of groups, several at once, and operators compiled among ranks."""

import sys

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
    across, down = (flux.World.from_torch(group, limit_seconds=60) for group in (rows[rank // 2], columns[rank % 2]))
    assert (across.rank, across.size, down.rank, down.size) == (rank % 2, 2, rank // 2, 2)
    x, w = torch.full((3, 8), float(rank)), torch.ones(16, 8)
    for _ in range(5):
        assert torch.equal(flux.gemm_all_reduce(across, x, w), torch.full((3, 16), 8.0 * (4 * (rank // 2) + 1)))
        assert torch.equal(flux.gemm_all_reduce(down, x, w), torch.full((3, 16), 8.0 * (2 * (rank % 2) + 2)))
        y = flux.all_gather_gemm(across, x, w)
        wanted = torch.tensor([rank // 2 * 2] * 3 + [rank // 2 * 2 + 1] * 3) * 8.0
        assert torch.equal(y, wanted[:, None].expand(6, 16))
    with pytest.raises(flux.InvalidError, match=f"rank {rank} is not in the group given"):
        flux.World.from_torch(rows[1 - rank // 2])
    with pytest.raises(flux.InvalidError, match="allowed are cpu, cuda"):
        flux.World.from_torch(rows[rank // 2], device="meta")


def check_compiled(world):
    """Forwards and backwards with no break in the graph, rows that do not divide among them, as without a compiler."""
    def mlp(x, up, down):
        hidden = torch.nn.functional.silu(torch_ops.all_gather_gemm(x, up, world=world, m=10))
        return torch_ops.gemm_reduce_scatter(hidden, down, world=world)

    torch.manual_seed(2 + world.rank)
    leaves = [torch.randn(shape, requires_grad=True) for shape in [(world.rows(10)[1], 16), (32, 16), (16, 32)]]
    found, wanted = ((y := f(*leaves), *torch.autograd.grad(y.square().sum(), leaves))
                     for f in (torch.compile(mlp, fullgraph=True, backend="aot_eager"), mlp))
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b)


def check_other_calls(world):
    """Ranks that make different calls all learn of it; a world made anew works."""
    with pytest.raises(flux.TimeoutError, match="different calls"):
        flux.gemm_all_reduce(world, torch.ones(2 + world.rank, 8), torch.ones(8, 8))
    dist.barrier()
    again = flux.World.from_torch(limit_seconds=60)
    assert flux.gemm_all_reduce(again, torch.ones(2, 8), torch.ones(8, 8)).eq(8 * world.size).all()


def main():
    dist.init_process_group("gloo")
    check_groups()
    world = flux.World.from_torch(limit_seconds=60)
    check_compiled(world)
    check_other_calls(world)
    del world
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
