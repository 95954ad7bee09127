"""Parameters that are shards of an unsharded module's, and the way from its state to theirs and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import _flux
from .errors import InvalidError
from .world import World


class Shards:
    """How one dimension of a parameter is divided: one or more blocks one behind the other (gate and up; q, k and v),
    each of so many units of so many elements, of which every rank gets its share."""

    def __init__(self, world: World, dim: int, blocks: Sequence[int], unit: int = 8):
        self.world, self.dim, self.blocks, self.unit = world, dim, list(blocks), unit
        for block in self.blocks:
            if unit != 8 and block % unit:
                raise InvalidError(f"{block} elements are no whole number of units of {unit}")

    def part(self, block: int, rank: int) -> tuple[int, int]:
        if self.unit == 8:
            return _flux.part_of_columns(block, rank, self.world.size)
        first, count = _flux.part_of_rows(block // self.unit, rank, self.world.size)
        return first * self.unit, count * self.unit

    def size(self, rank: int) -> int:
        return sum(self.part(block, rank)[1] for block in self.blocks)

    def cut(self, full: Tensor) -> Tensor:
        """This rank's shard of the whole."""
        pieces = [block.narrow(self.dim, *self.part(size, self.world.rank))
                  for block, size in zip(full.split(self.blocks, self.dim), self.blocks)]
        return torch.cat(pieces, self.dim)

    def join(self, shards: Sequence[Tensor]) -> Tensor:
        """The whole of every rank's shard."""
        pieces = [shard.split([self.part(block, rank)[1] for block in self.blocks], self.dim)
                  for rank, shard in enumerate(shards)]
        return torch.cat([piece[i] for i in range(len(self.blocks)) for piece in pieces], self.dim)


def linear_shapes(in_features: int, out_features: int, bias: bool, in_out: bool) -> dict[str, list[int]]:
    """The parameters of an unsharded linear layer."""
    weight = [in_features, out_features] if in_out else [out_features, in_features]
    return {"weight": weight, **({"bias": [out_features]} if bias else {})}


class Sharded(nn.Module):
    """A linear layer some of whose parameters are shards: `shards` says which and how. The weight is [out, in], or
    [in, out] with in_out."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, world: World, sequence_parallel: bool, shards: dict[str, Shards], shapes: dict[str, list[int]],
                 in_out: bool, factory: dict[str, Any]):
        super().__init__()
        self.world, self.sequence_parallel, self.shards, self.shapes = world, sequence_parallel, shards, shapes
        self.in_out = in_out
        self.names: tuple[str, ...] = ()  # of the unsharded modules that are blocks of this one; none: it is one module
        for name in ("weight", "bias"):
            parameter = None
            if name in shapes:
                shape = list(shapes[name])
                if name in shards:
                    shape[shards[name].dim] = shards[name].size(world.rank)
                parameter = nn.Parameter(torch.empty(shape, **factory))
            self.register_parameter(name, parameter)
        self.reset_parameters()
        self.register_load_state_dict_pre_hook(_cut)

    def reset_parameters(self) -> None:
        """As torch.nn.Linear's: every rank draws the whole from the same generator and keeps its shard."""
        bound = self.shapes["weight"][0 if self.in_out else 1] ** -0.5
        for name, shape in self.shapes.items():
            whole = torch.empty(shape, dtype=getattr(self, name).dtype, device=getattr(self, name).device)
            whole.uniform_(-bound, bound)
            with torch.no_grad():
                getattr(self, name).copy_(self.shards[name].cut(whole) if name in self.shards else whole)


def _cut(module: Sharded, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Whole tensors become this rank's shards."""
    for name, shards in module.shards.items():
        found = state.get(prefix + name)
        if found is not None and list(found.shape) == module.shapes[name]:
            state[prefix + name] = shards.cut(found)


def named_blocks(parent: nn.Module, child: str, names: Sequence[str]) -> None:
    """The blocks of parent.child are the unsharded modules of these names: state dicts of those load."""
    layer: Sharded = getattr(parent, child)
    layer.names = tuple(names)

    def merge(_: nn.Module, state: dict[str, Any], prefix: str, *__: Any) -> None:
        for name in layer.shapes:
            keys = [f"{prefix}{part}.{name}" for part in names]
            if all(key in state for key in keys):
                state[f"{prefix}{child}.{name}"] = torch.cat([state.pop(key) for key in keys])

    parent.register_load_state_dict_pre_hook(merge)


def full_state_dict(module: nn.Module, world: World) -> dict[str, Tensor]:
    """The state of the unsharded module, whole on every rank. Collective; for worlds made from torch.distributed."""
    import torch.distributed as dist

    state = dict(module.state_dict())
    for path, layer in module.named_modules():
        if not isinstance(layer, Sharded):
            continue
        prefix = path + "." if path else ""
        for name, shards in layer.shards.items():
            mine = state.pop(prefix + name).contiguous()
            shapes = [list(mine.shape) for _ in range(world.size)]
            for rank, shape in enumerate(shapes):
                shape[shards.dim] = shards.size(rank)
            # Shards differ in size, and broadcasts take any.
            parts = [mine if rank == world.rank else mine.new_empty(shape) for rank, shape in enumerate(shapes)]
            for rank, part in enumerate(parts):
                dist.broadcast(part, dist.get_global_rank(world.group, rank), group=world.group)
            whole = shards.join(parts)
            if not layer.names:
                state[prefix + name] = whole
                continue
            above = path.rpartition(".")[0]
            above = above + "." if above else ""
            for part, block in zip(layer.names, whole.split(shards.blocks, shards.dim)):
                state[f"{above}{part}.{name}"] = block
    return state
