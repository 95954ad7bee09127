"""The operators by torch.distributed, communication and GEMM one after the other: what FLUX=off uses, and the plain
reference of the tests. Worlds made by World.from_torch alone have the group that it takes."""

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
    """Parts that differ by a row are padded to the longest."""
    longest = -(-m // world.size)
    everybody = x.new_empty(world.size * longest, x.size(1))
    mine = pad(x, (0, 0, 0, longest - x.size(0))).contiguous()
    dist.all_gather(list(everybody.split(longest)) if longest else [everybody] * world.size, mine, group=world.group)
    return torch.cat([everybody[r * longest:][:_flux.part_of_rows(m, r, world.size)[1]] for r in range(world.size)])


def gemm_all_reduce(world: World, x: Tensor, weight: Tensor, bias: Tensor | None, in_out: bool) -> Tensor:
    y = linear(x, weight, None, in_out)
    dist.all_reduce(y, group=world.group)
    return y if bias is None else y + bias


def gemm_reduce_scatter(world: World, x: Tensor, weight: Tensor, bias: Tensor | None, in_out: bool) -> Tensor:
    return gemm_all_reduce(world, x, weight, bias, in_out).narrow(0, *world.rows(x.size(0))).clone()
