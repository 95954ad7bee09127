"""The operators by torch.distributed, communication and GEMM one after the other: what FLUX=off uses, and the plain
reference of the tests. Worlds made by World.from_torch alone have the group that it takes.

The collectives are those of whole tensors, which NCCL serves without copies. Parts that differ by a row are padded to
the longest, which copies them.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import pad

from . import _flux
from .world import World


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, in_out: bool) -> Tensor:
    y = x @ (weight if in_out else weight.t())
    return y if bias is None else y + bias


def all_gather(world: World, x: Tensor, m: int) -> Tensor:
    """x [m_r, k] -> [m, k]."""
    longest = -(-m // world.size)
    everybody = x.new_empty(world.size * longest, x.size(1))
    if m:
        mine = pad(x, (0, 0, 0, longest - x.size(0))).contiguous()
        dist.all_gather_into_tensor(everybody, mine, group=world.group)
    if m % world.size == 0:
        return everybody
    return torch.cat([everybody[r * longest:][:_flux.part_of_rows(m, r, world.size)[1]] for r in range(world.size)])


def gemm_all_reduce(world: World, x: Tensor, weight: Tensor, bias: Tensor | None, in_out: bool) -> Tensor:
    y = linear(x, weight, None, in_out)
    dist.all_reduce(y, group=world.group)
    return y if bias is None else y + bias


def gemm_reduce_scatter(world: World, x: Tensor, weight: Tensor, bias: Tensor | None, in_out: bool) -> Tensor:
    y, m = linear(x, weight, None, in_out), x.size(0)
    longest = -(-m // world.size)
    if m % world.size:
        parts = [_flux.part_of_rows(m, r, world.size) for r in range(world.size)]
        y = torch.cat([pad(y.narrow(0, *part), (0, 0, 0, longest - part[1])) for part in parts])
    mine = y.new_empty(longest, y.size(1))
    if m:
        dist.reduce_scatter_tensor(mine, y, group=world.group)
    mine = mine[:world.rows(m)[1]]
    return mine if bias is None else mine + bias
