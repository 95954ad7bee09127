"""Custom operators of torch, with shapes for compilation and gradients fused both ways.

A world crosses as its integer handle. x has the rows of this rank, and m says how many there are over all ranks, since
parts may differ. The gradient of AG+GEMM is GEMM+RS and the reverse; that of GEMM+AR needs no communication, and that
of a column-parallel layer without sequence parallelism is GEMM+AR. Weight gradients (weight_gradient.py) are products
of torch from the gathered rows, on GPUs beside the communication of the input's gradient; the rows of AG+GEMM are kept
from the forward pass (keep=True) or gathered again.

Everything here also runs with FLUX=off, by torch's own collectives, which are what the tests compare with.
"""

from __future__ import annotations

import torch
from torch import Tensor

from . import operators, unfused
from .registration import register
from .weight_gradient import Beside, weight_gradient
from .world import World


def _ready(x: Tensor) -> Tensor:
    """Rows may lie apart, their elements not; overlapping rows (an expanded gradient) are copied."""
    if x.is_contiguous() or x.stride(-1) == 1 and (x.size(0) < 2 or x.stride(0) >= x.size(1)):
        return x
    return x.contiguous()


def _all_gather_gemm(x: Tensor, weight: Tensor, bias: Tensor | None, world: int, m: int, in_out: bool,
                     keep: bool) -> tuple[Tensor, Tensor]:
    w, x = World.of(world), _ready(x)
    if w.off:
        rows = unfused.all_gather(w, x, m)
        return unfused.linear(rows, weight, bias, in_out), rows if keep else rows.new_empty(0, x.size(1))
    rows = x.new_empty(m if keep else 0, x.size(1))
    y = operators.all_gather_gemm(w, x, _ready(weight), bias, m=m, in_out=in_out, gathered=rows if keep else None)
    return y, rows


def _all_gather_gemm_shape(x, weight, bias, world, m, in_out, keep):
    return x.new_empty(m, weight.size(1 if in_out else 0)), x.new_empty(m if keep else 0, x.size(1))


def _all_gather(x: Tensor, world: int, m: int) -> Tensor:
    w, x = World.of(world), _ready(x)
    if w.off:
        return unfused.all_gather(w, x, m)
    rows = x.new_empty(m, x.size(1))
    operators.all_gather_gemm(w, x, None, m=m, gathered=rows)
    return rows


def _all_gather_shape(x, world, m):
    return x.new_empty(m, x.size(1))


def _sum(fused, plain, x: Tensor, weight: Tensor, bias: Tensor | None, world: int, in_out: bool) -> Tensor:
    w = World.of(world)
    if w.off:
        return plain(w, x, weight, bias, in_out)
    return fused(w, _ready(x), _ready(weight), bias, in_out=in_out)


def _gemm_reduce_scatter(x: Tensor, weight: Tensor, bias: Tensor | None, world: int, in_out: bool) -> Tensor:
    return _sum(operators.gemm_reduce_scatter, unfused.gemm_reduce_scatter, x, weight, bias, world, in_out)


def _scattered_shape(x, weight, bias, world, in_out):
    w, m = World.of(world), x.size(0)
    return x.new_empty((w.rank + 1) * m // w.size - w.rank * m // w.size, weight.size(1 if in_out else 0))


def _gemm_all_reduce(x: Tensor, weight: Tensor, bias: Tensor | None, world: int, in_out: bool) -> Tensor:
    return _sum(operators.gemm_all_reduce, unfused.gemm_all_reduce, x, weight, bias, world, in_out)


def _column_linear(x: Tensor, weight: Tensor, bias: Tensor | None, world: int, in_out: bool) -> Tensor:
    return unfused.linear(x, weight, bias, in_out)


def _linear_shape(x, weight, bias, world, in_out):
    return x.new_empty(x.size(0), weight.size(1 if in_out else 0))


def _save(ctx, x, weight, bias, world, in_out, *more) -> None:
    ctx.save_for_backward(x, weight, *more)
    ctx.world, ctx.in_out, ctx.biased = world, in_out, bias is not None


def _gather_setup(ctx, inputs, output) -> None:
    x, weight, bias, world, m, in_out, keep = inputs
    _save(ctx, None if keep else x, weight, bias, world, in_out, output[1] if keep else None)
    ctx.m = m
    ctx.mark_non_differentiable(output[1])


def _gather_backward(ctx, dy, _):
    x, weight, rows = ctx.saved_tensors
    want_x, want_w, want_b = ctx.needs_input_grad[:3]
    if want_w and rows is None:
        rows = torch.ops.flux.all_gather(x, ctx.world, ctx.m)
    beside, dw = Beside(dy), None
    dx = torch.ops.flux.gemm_reduce_scatter(dy, weight, None, ctx.world, not ctx.in_out) if want_x else None
    with beside.within():
        if want_w:
            dw = weight_gradient(weight, dy, rows, ctx.in_out)
    beside.join()
    return dx, dw, dy.sum(0) if want_b and ctx.biased else None, None, None, None, None


def _sum_setup(ctx, inputs, output) -> None:
    x, weight, bias, world, in_out = inputs
    _save(ctx, x, weight, bias, world, in_out)


def _scatter_backward(ctx, dy):
    x, weight = ctx.saved_tensors
    want_x, want_w, want_b = ctx.needs_input_grad[:3]
    dx = dw = db = None
    keep = want_w or (want_b and ctx.biased)
    if want_x:
        dx, dy = torch.ops.flux.all_gather_gemm(dy, weight, None, ctx.world, x.size(0), not ctx.in_out, keep)
    elif keep:
        dy = torch.ops.flux.all_gather(dy, ctx.world, x.size(0))
    if want_w:
        dw = weight_gradient(weight, dy, x, ctx.in_out)
    if want_b and ctx.biased:
        db = dy.sum(0)
    return dx, dw, db, None, None


def _reduce_backward(ctx, dy):
    """Every rank has all of dy."""
    x, weight = ctx.saved_tensors
    want_x, want_w, want_b = ctx.needs_input_grad[:3]
    dx = dy @ (weight.t() if ctx.in_out else weight) if want_x else None
    dw = weight_gradient(weight, dy, x, ctx.in_out) if want_w else None
    return dx, dw, dy.sum(0) if want_b and ctx.biased else None, None, None


def _column_backward(ctx, dy):
    x, weight = ctx.saved_tensors
    want_x, want_w, want_b = ctx.needs_input_grad[:3]
    beside, dw = Beside(dy), None
    dx = torch.ops.flux.gemm_all_reduce(dy, weight, None, ctx.world, not ctx.in_out) if want_x else None
    with beside.within():
        if want_w:
            dw = weight_gradient(weight, dy, x, ctx.in_out)
    beside.join()
    return dx, dw, dy.sum(0) if want_b and ctx.biased else None, None, None


_call_all_gather_gemm = register(_all_gather_gemm, _all_gather_gemm_shape, _gather_setup, _gather_backward)
_call_gemm_reduce_scatter = register(_gemm_reduce_scatter, _scattered_shape, _sum_setup, _scatter_backward)
_call_gemm_all_reduce = register(_gemm_all_reduce, _linear_shape, _sum_setup, _reduce_backward)
_call_column_linear = register(_column_linear, _linear_shape, _sum_setup, _column_backward)
register(_all_gather, _all_gather_shape)


def _checkpointed() -> bool:
    """Whether this forward pass is an activation checkpoint's: recomputed within a backward pass, or the one whose saved
    tensors are dropped until then, and which must save the same."""
    if torch.compiler.is_compiling():
        return False
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
    return torch._C._current_graph_task_id() != -1 or bool(hooks) and hooks[0].__module__ == "torch.utils.checkpoint"


def all_gather_gemm(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, world: World, m: int | None = None,
                    in_out: bool = False, keep: bool = True) -> Tensor:
    """x [m_r, k], weight [n_r, k], bias [n_r] -> all_gather(x) wᵀ + bias [m, n_r], with gradients.

    m: rows over all ranks; None: the ranks' parts are equal. keep: the gathered rows stay for the weight's gradient
    (m k elements); False: they are gathered again in the backward pass, but not where activations are recomputed: rows
    gathered then are used at once, so they stay.
    """
    m = x.size(0) * world.size if m is None else m
    keep = (keep or _checkpointed()) and torch.is_grad_enabled() and weight.requires_grad
    return _call_all_gather_gemm(x, weight, bias, world.handle, m, in_out, keep)[0]


def gemm_reduce_scatter(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, world: World,
                        in_out: bool = False) -> Tensor:
    """x [m, k_r], weight [n, k_r], bias [n] (the same on every rank) -> reduce_scatter(x wᵀ) + bias [m_r, n]."""
    return _call_gemm_reduce_scatter(x, weight, bias, world.handle, in_out)


def gemm_all_reduce(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, world: World,
                    in_out: bool = False) -> Tensor:
    """x [m, k_r], weight [n, k_r], bias [n] (the same on every rank) -> all_reduce(x wᵀ) + bias [m, n]."""
    return _call_gemm_all_reduce(x, weight, bias, world.handle, in_out)


def column_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, world: World,
                  in_out: bool = False) -> Tensor:
    """x [m, k] (the same on every rank), weight [n_r, k], bias [n_r] -> x wᵀ + bias [m, n_r]; its gradient is GEMM+AR."""
    return _call_column_linear(x, weight, bias, world.handle, in_out)


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, world, m):
        ctx.rows = world.rows(m)
        return torch.ops.flux.all_gather(x, world.handle, m)

    @staticmethod
    def backward(ctx, dy):
        return dy.narrow(0, *ctx.rows), None, None


class _ScatterRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, world):
        ctx.world, ctx.m = world, x.size(0)
        return x.narrow(0, *world.rows(x.size(0))).clone()

    @staticmethod
    def backward(ctx, dy):
        return torch.ops.flux.all_gather(dy, ctx.world.handle, ctx.m), None


def gather_rows(x: Tensor, world: World, m: int) -> Tensor:
    """x [m_r, k] -> [m, k] on every rank, each of which goes on with the same: a rank's gradient is its own rows'."""
    return _GatherRows.apply(x, world, m)


def scatter_rows(x: Tensor, world: World) -> Tensor:
    """x [m, k], the same on every rank -> this rank's rows [m_r, k]; its gradient gathers everybody's."""
    return _ScatterRows.apply(x, world)
