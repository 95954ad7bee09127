"""Tensor-parallel layers of torch. Inputs may have any number of leading dimensions; they are rows.

With sequence_parallel=True activations between layers are sharded by rows (the leading dimension, as Megatron's
[s, b, h]): a column-parallel layer gathers them, a row-parallel one scatters its sums. Without, every rank holds all
rows: a column-parallel layer's forward pass and a row-parallel one's backward pass need no communication.

Parameters are this rank's shards (sharding.py). `load_state_dict` takes those of the unsharded module as well as shards;
`full_state_dict` gives the unsharded ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from . import torch_ops
from .errors import InvalidError
from .sharding import Sharded, Shards, full_state_dict, linear_shapes, named_blocks
from .world import World

__all__ = ["ColumnParallelLinear", "ParallelAttention", "ParallelMLP", "RowParallelLinear", "full_state_dict"]


class ColumnParallelLinear(Sharded):
    """y = x wᵀ + b with this rank's rows of w [out_features, in_features].

    out_features: or several, blocks of one weight that are each divided; unit: elements that stay together (8, or the
    size of a head). keep: the gathered rows stay for the weight's gradient; False: gathered again. in_out: w is
    [in_features, out_features].
    forward(x [m_r, ..., in], m=None) -> [m, ..., out_r]; m: leading dimension over all ranks, None: parts are equal.
    Without sequence_parallel, x [m, ..., in] is the same on every rank.
    """

    def __init__(self, in_features: int, out_features: int | Sequence[int], world: World, *, bias: bool = True,
                 sequence_parallel: bool = True, keep: bool = True, unit: int = 8, in_out: bool = False,
                 device: Any = None, dtype: Any = None):
        blocks = [out_features] if isinstance(out_features, int) else list(out_features)
        shapes = linear_shapes(in_features, sum(blocks), bias, in_out)
        shards = {name: Shards(world, len(shape) - 1 if in_out else 0, blocks, unit) for name, shape in shapes.items()}
        super().__init__(world, sequence_parallel, shards, shapes, in_out, {"device": device, "dtype": dtype})
        self.keep = keep

    def forward(self, x: Tensor, m: int | None = None) -> Tensor:
        between = x.shape[1:-1]
        rows = x.reshape(-1, x.size(-1))
        if not self.sequence_parallel:
            y = torch_ops.column_linear(rows, self.weight, self.bias, world=self.world, in_out=self.in_out)
            return y.view(*x.shape[:-1], y.size(-1))
        m = x.size(0) * self.world.size if m is None else m
        y = torch_ops.all_gather_gemm(rows, self.weight, self.bias, world=self.world, m=m * between.numel(),
                                      in_out=self.in_out, keep=self.keep)
        return y.view(m, *between, y.size(-1))


class RowParallelLinear(Sharded):
    """y = sum over ranks of x wᵀ, + b, with this rank's columns of w [out_features, in_features]; b is the same on all.

    forward(x [m, ..., in_r]) -> [m_r, ..., out] with sequence_parallel, otherwise [m, ..., out] on every rank.
    """

    def __init__(self, in_features: int, out_features: int, world: World, *, bias: bool = True,
                 sequence_parallel: bool = True, unit: int = 8, in_out: bool = False, device: Any = None,
                 dtype: Any = None):
        shards = {"weight": Shards(world, 0 if in_out else 1, [in_features], unit)}
        super().__init__(world, sequence_parallel, shards, linear_shapes(in_features, out_features, bias, in_out),
                         in_out, {"device": device, "dtype": dtype})

    def forward(self, x: Tensor) -> Tensor:
        between = x.shape[1:-1]
        rows = x.reshape(-1, x.size(-1))
        if not self.sequence_parallel:
            y = torch_ops.gemm_all_reduce(rows, self.weight, self.bias, world=self.world, in_out=self.in_out)
            return y.view(*x.shape[:-1], y.size(-1))
        if between.numel() > 1 and x.size(0) % self.world.size:
            raise InvalidError(f"{x.size(0)} rows of {list(between)} are divided over {self.world.size} ranks; make them a "
                               "multiple, or flatten them")
        y = torch_ops.gemm_reduce_scatter(rows, self.weight, self.bias, world=self.world, in_out=self.in_out)
        return y.view(-1, *between, y.size(-1))


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
        named_blocks(self, "up", ("gate_proj", "up_proj") if gated else ("up_proj",))

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
        named_blocks(self, "qkv", ("q_proj", "k_proj", "v_proj"))

    def project(self, x: Tensor, m: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Of this rank's heads: q [m, ..., heads_r head], k and v [m, ..., key_heads_r head]."""
        q, k, v = self.qkv(x, m).split(self.sizes, -1)
        return q, k, v
