"""Tensor-parallel layers of torch. Inputs may have any number of leading dimensions; they are rows.

With sequence_parallel=True activations between layers are sharded by rows (the leading dimension, as Megatron's
[s, b, h]): a column-parallel layer gathers them, a row-parallel one scatters its sums. Without, every rank holds all
rows: a column-parallel layer's forward pass and a row-parallel one's backward pass need no communication.

Parameters are this rank's shards. `load_state_dict` takes those of the unsharded module as well as shards;
`full_state_dict` gives the unsharded ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import _flux, torch_ops
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


class _Sharded(nn.Module):
    """A linear layer some of whose parameters are shards: `shards` says which and how."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, world: World, sequence_parallel: bool, shards: dict[str, Shards], shapes: dict[str, list[int]],
                 factory: dict[str, Any]):
        super().__init__()
        self.world, self.sequence_parallel, self.shards, self.shapes = world, sequence_parallel, shards, shapes
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
        bound = self.shapes["weight"][1] ** -0.5
        for name, shape in self.shapes.items():
            whole = torch.empty(shape, dtype=getattr(self, name).dtype, device=getattr(self, name).device)
            whole.uniform_(-bound, bound)
            with torch.no_grad():
                getattr(self, name).copy_(self.shards[name].cut(whole) if name in self.shards else whole)


def _cut(module: _Sharded, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Whole tensors become this rank's shards."""
    for name, shards in module.shards.items():
        found = state.get(prefix + name)
        if found is not None and list(found.shape) == module.shapes[name]:
            state[prefix + name] = shards.cut(found)


class ColumnParallelLinear(_Sharded):
    """y = x wᵀ + b with this rank's rows of w [out_features, in_features].

    out_features: or several, blocks of one weight that are each divided; unit: elements that stay together (8, or the
    size of a head). keep: the gathered rows stay for the weight's gradient; False: gathered again.
    forward(x [m_r, ..., in], m=None) -> [m, ..., out_r]; m: leading dimension over all ranks, None: parts are equal.
    Without sequence_parallel, x [m, ..., in] is the same on every rank.
    """

    def __init__(self, in_features: int, out_features: int | Sequence[int], world: World, *, bias: bool = True,
                 sequence_parallel: bool = True, keep: bool = True, unit: int = 8, device: Any = None,
                 dtype: Any = None):
        blocks = [out_features] if isinstance(out_features, int) else list(out_features)
        shapes = {"weight": [sum(blocks), in_features], **({"bias": [sum(blocks)]} if bias else {})}
        super().__init__(world, sequence_parallel, {name: Shards(world, 0, blocks, unit) for name in shapes}, shapes,
                         {"device": device, "dtype": dtype})
        self.keep = keep

    def forward(self, x: Tensor, m: int | None = None) -> Tensor:
        between = x.shape[1:-1]
        rows = x.reshape(-1, x.size(-1))
        if not self.sequence_parallel:
            y = torch_ops.column_linear(rows, self.weight, self.bias, world=self.world)
            return y.view(*x.shape[:-1], y.size(-1))
        m = x.size(0) * self.world.size if m is None else m
        y = torch_ops.all_gather_gemm(rows, self.weight, self.bias, world=self.world, m=m * between.numel(),
                                      keep=self.keep)
        return y.view(m, *between, y.size(-1))


class RowParallelLinear(_Sharded):
    """y = sum over ranks of x wᵀ, + b, with this rank's columns of w [out_features, in_features]; b is the same on all.

    forward(x [m, ..., in_r]) -> [m_r, ..., out] with sequence_parallel, otherwise [m, ..., out] on every rank.
    """

    def __init__(self, in_features: int, out_features: int, world: World, *, bias: bool = True,
                 sequence_parallel: bool = True, unit: int = 8, device: Any = None, dtype: Any = None):
        shapes = {"weight": [out_features, in_features], **({"bias": [out_features]} if bias else {})}
        super().__init__(world, sequence_parallel, {"weight": Shards(world, 1, [in_features], unit)}, shapes,
                         {"device": device, "dtype": dtype})

    def forward(self, x: Tensor) -> Tensor:
        between = x.shape[1:-1]
        rows = x.reshape(-1, x.size(-1))
        if not self.sequence_parallel:
            y = torch_ops.gemm_all_reduce(rows, self.weight, self.bias, world=self.world)
            return y.view(*x.shape[:-1], y.size(-1))
        if between.numel() > 1 and x.size(0) % self.world.size:
            raise InvalidError(f"{x.size(0)} rows of {list(between)} are divided over {self.world.size} ranks; make them a "
                               "multiple, or flatten them")
        y = torch_ops.gemm_reduce_scatter(rows, self.weight, self.bias, world=self.world)
        return y.view(-1, *between, y.size(-1))


def _named_blocks(parent: nn.Module, child: str, names: Sequence[str]) -> None:
    """The blocks of parent.child are the unsharded modules of these names: state dicts of those load."""
    layer: ColumnParallelLinear = getattr(parent, child)
    layer.names = tuple(names)

    def merge(_: nn.Module, state: dict[str, Any], prefix: str, *__: Any) -> None:
        for name in layer.shapes:
            keys = [f"{prefix}{part}.{name}" for part in names]
            if all(key in state for key in keys):
                state[f"{prefix}{child}.{name}"] = torch.cat([state.pop(key) for key in keys])

    parent.register_load_state_dict_pre_hook(merge)


class ParallelMLP(nn.Module):
    """down_proj(act(gate_proj(x)) · up_proj(x)), or down_proj(act(up_proj(x))) where not gated. Names and numbers are
    those of the unsharded module. activation: a function of torch; rows as its two layers'."""

    def __init__(self, hidden: int, inner: int, world: World, *, activation: Callable[[Tensor], Tensor] = nn.functional.silu,
                 gated: bool = True, bias: bool = False, sequence_parallel: bool = True, device: Any = None,
                 dtype: Any = None):
        super().__init__()
        rest = {"bias": bias, "sequence_parallel": sequence_parallel, "device": device, "dtype": dtype}
        self.gated, self.activation = gated, activation
        self.up = ColumnParallelLinear(hidden, [inner] * (2 if gated else 1), world, **rest)
        self.down_proj = RowParallelLinear(inner, hidden, world, **rest)
        _named_blocks(self, "up", ("gate_proj", "up_proj") if gated else ("up_proj",))

    def forward(self, x: Tensor, m: int | None = None) -> Tensor:
        y = self.up(x, m)
        if self.gated:
            gate, up = y.chunk(2, -1)
            return self.down_proj(self.activation(gate) * up)
        return self.down_proj(self.activation(y))


class ParallelAttention(nn.Module):
    """The projections of attention: q_proj, k_proj and v_proj as one gather, o_proj behind it. Heads are divided over
    the ranks; fewer key heads than ranks, or a number that does not divide, is an InvalidError."""

    def __init__(self, hidden: int, heads: int, world: World, *, key_heads: int | None = None, head: int | None = None,
                 bias: bool = False, sequence_parallel: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        key_heads, head = key_heads or heads, head or hidden // heads
        if heads % world.size or key_heads % world.size:
            raise InvalidError(f"{heads} heads and {key_heads} key heads over {world.size} ranks; both must divide")
        rest = {"sequence_parallel": sequence_parallel, "unit": head, "device": device, "dtype": dtype}
        self.sizes = [heads // world.size * head, *[key_heads // world.size * head] * 2]
        self.qkv = ColumnParallelLinear(hidden, [heads * head, key_heads * head, key_heads * head], world, bias=bias, **rest)
        self.o_proj = RowParallelLinear(heads * head, hidden, world, bias=False, **rest)
        _named_blocks(self, "qkv", ("q_proj", "k_proj", "v_proj"))

    def project(self, x: Tensor, m: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Of this rank's heads: q [m, ..., heads_r head], k and v [m, ..., key_heads_r head]."""
        q, k, v = self.qkv(x, m).split(self.sizes, -1)
        return q, k, v


def full_state_dict(module: nn.Module, world: World) -> dict[str, Tensor]:
    """The state of the unsharded module, whole on every rank. Collective; for worlds made from torch.distributed."""
    import torch.distributed as dist

    state = dict(module.state_dict())
    for path, layer in module.named_modules():
        if not isinstance(layer, _Sharded):
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
