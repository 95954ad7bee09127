"""Medium-grained overlap: a product in as many pieces as ranks, each beside the transfer of another, with gradients.

The stand-in for Transformer Engine's way, by torch's products and sends: pieces come and go in the order of the ring, so
every rank sends to one and receives from one at a time.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _flux
from ..world import World


def _exchange(world: World, away: int, sent: Tensor, received: Tensor) -> list[Any]:
    """Starts a send to the rank so far ahead and a receive from the one as far behind."""
    def peer(rank: int) -> int:
        return dist.get_global_rank(world.group, rank % world.size)

    return dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, peer(world.rank + away), world.group),
                                   dist.P2POp(dist.irecv, received, peer(world.rank - away), world.group)])


def _parts(world: World, rows: int) -> list[slice]:
    parts = (_flux.part_of_rows(rows, rank, world.size) for rank in range(world.size))
    return [slice(first, first + count) for first, count in parts]


def gather_product(x: Tensor, right: Tensor, world: World, m: int) -> tuple[Tensor, Tensor]:
    """x [m_r, k], right [k, n_r] -> all_gather(x) right [m, n_r], and all rows [m, k]: a product as each part arrives."""
    x, parts = x.contiguous(), _parts(world, m)
    rows, y = x.new_empty(m, x.size(1)), x.new_empty(m, right.size(1))
    rows[parts[world.rank]] = x
    under_way = [_exchange(world, away, x, rows[parts[world.rank - away]]) for away in range(1, world.size)]
    for away in range(world.size):
        for transfer in under_way[away - 1] if away else []:
            transfer.wait()
        part = parts[world.rank - away]
        torch.mm(rows[part], right, out=y[part])
    return y, rows


def product_scatter(x: Tensor, right: Tensor, world: World) -> Tensor:
    """x [m, k_r], right [k_r, n] -> reduce_scatter(x right) [m_r, n]: each part leaves as soon as it is a product."""
    parts = _parts(world, x.size(0))
    mine = parts[world.rank]
    slots = x.new_empty(world.size, mine.stop - mine.start, right.size(1))
    under_way, sent = [], []
    for away in range(1, world.size):
        sent.append(x[parts[(world.rank + away) % world.size]] @ right)
        under_way += _exchange(world, away, sent[-1], slots[world.rank - away])
    torch.mm(x[mine], right, out=slots[world.rank])
    for transfer in under_way:
        transfer.wait()
    return slots.sum(0)


class Gather(torch.autograd.Function):
    """x [m_r, k], weight [n_r, k], world, m -> [m, n_r]"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, world: World, m: int) -> Tensor:
        y, rows = gather_product(x, weight.t(), world, m)
        ctx.save_for_backward(rows, weight)
        ctx.world = world
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple:
        rows, weight = ctx.saved_tensors
        return product_scatter(dy, weight, ctx.world), dy.t() @ rows, None, None


class Scatter(torch.autograd.Function):
    """x [m, k_r], weight [n, k_r], world -> [m_r, n]"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, world: World) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.world = world
        return product_scatter(x, weight.t(), world)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple:
        x, weight = ctx.saved_tensors
        dx, rows = gather_product(dy, weight, ctx.world, x.size(0))
        return dx, rows.t() @ x, None
