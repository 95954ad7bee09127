"""The ways to do a layer's two products with their communication, and why one cannot be had here."""

from __future__ import annotations

import importlib.util

import torch
import torch.distributed as dist
from torch import Tensor

from .. import torch_ops
from ..world import World
from . import chunked

LABELS = {
    "flux": "AG+GEMM and GEMM+RS; in decoding GEMM+AR",
    "megatron_style": "torch's GEMM and all-gather or reduce-scatter, one after the other",
    "vllm_style": "torch's GEMM, then all-reduce",
    "torch_symm_mem": "torch's Async-TP",
    "chunked": "torch's GEMM in a piece a rank, each beside a transfer: the stand-in for Transformer Engine",
    "transformer_engine": "Transformer Engine's user buffers",
}


class Method:
    """column: x (this rank's rows, or all) by its rows of the weight -> all rows; row: the reverse."""

    def __init__(self, name: str, world: World, divided: bool):
        self.name, self.world, self.divided = name, world, divided

    def column(self, x: Tensor, weight: Tensor, m: int) -> Tensor:
        if self.divided:
            return torch_ops.all_gather_gemm(x, weight, world=self.world, m=m)
        return torch_ops.column_linear(x, weight, world=self.world)

    def row(self, x: Tensor, weight: Tensor) -> Tensor:
        operator = torch_ops.gemm_reduce_scatter if self.divided else torch_ops.gemm_all_reduce
        return operator(x, weight, world=self.world)


class AsyncTp(Method):
    """torch's fused operators over symmetric memory; forwards alone, as torch has no gradient for them."""

    def column(self, x: Tensor, weight: Tensor, m: int) -> Tensor:
        group = self.world.group.group_name
        return torch.ops.symm_mem.fused_all_gather_matmul(x, [weight.t()], 0, group)[1][0]

    def row(self, x: Tensor, weight: Tensor) -> Tensor:
        group = self.world.group.group_name
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(x, weight.t(), "sum", 0, group)


class Chunked(Method):
    """A piece a rank (chunked.py)."""

    def column(self, x: Tensor, weight: Tensor, m: int) -> Tensor:
        return chunked.Gather.apply(x, weight, self.world, m)

    def row(self, x: Tensor, weight: Tensor) -> Tensor:
        return chunked.Scatter.apply(x, weight, self.world)


def _has_async_tp() -> bool:
    import torch.distributed._symmetric_memory  # noqa: F401  (the operators)

    return all(hasattr(torch.ops.symm_mem, name) for name in ("fused_all_gather_matmul", "fused_matmul_reduce_scatter"))


def refusal(name: str, phase: str, cuda: bool) -> str | None:
    """Why this method has no row here; None: it has."""
    if name == "torch_symm_mem" and not cuda:
        return "torch's symmetric memory needs GPUs that reach each other"
    if name == "torch_symm_mem" and phase != "prefill":
        return "torch's fused operators have neither a gradient nor an all-reduce"
    if name == "torch_symm_mem" and not _has_async_tp():
        return f"torch {torch.__version__} has no torch.ops.symm_mem.fused_all_gather_matmul"
    if name in ("megatron_style", "chunked") and phase == "decode":
        return "few rows are not divided; vllm_style is the baseline of decoding"
    if name == "transformer_engine":
        found = importlib.util.find_spec("transformer_engine") is not None
        return "its layers are not connected yet; chunked stands for it" if found else \
            "the package transformer_engine is not installed; chunked stands for it"
    return None


_KINDS = {"torch_symm_mem": AsyncTp, "chunked": Chunked}


def make(name: str, ours: World, phase: str) -> Method:
    """The other methods go through a world of the same ranks that is switched off: torch's collectives."""
    if name == "flux":
        return Method(name, ours, phase != "decode")
    plain = World(None, ours.group, rank=dist.get_rank(ours.group), size=ours.size)
    if name in _KINDS:
        return _KINDS[name](name, plain, True)
    return Method(name, plain, name == "megatron_style")
