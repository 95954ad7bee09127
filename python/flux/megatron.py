"""megatron-core's tensor-parallel linear layers with FLUX's operators in them; needs megatron-core.

Both classes are Megatron's own with another forward and backward pass: constructors, parameters, initialisation and
sharded_state_dict are Megatron's, [s, b, h] inputs, (output, bias) results too. In a model's code or specs:

    from flux.megatron import ColumnParallelLinear, RowParallelLinear    # instead of megatron.core.tensor_parallel
    spec = flux.megatron.with_flux(get_gpt_layer_local_spec())           # or in a spec

With sequence parallelism the pairs are AG+GEMM and GEMM+RS both ways; without, GEMM+AR. A weight's gradient is added to its
main_grad (fp32) where it has one, whether or not gradient_accumulation_fusion is set, and needs no extension for that.
Layers that FLUX has no part in are Megatron's own: experts, groups of one rank, gradients of the embedding that are
deferred, offloaded activations, and all of them with FLUX=off.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from megatron.core.tensor_parallel import layers as megatron
from torch import Tensor

from . import torch_ops
from .world import World, switched_off


def _with_flux(layer: Any) -> bool:
    return layer.tp_group.size() > 1 and not (layer.explicit_expert_comm or switched_off()
                                              or layer.config._cpu_offloading_context is not None)


class ColumnParallelLinear(megatron.ColumnParallelLinear):
    """Megatron's column-parallel layer; the world of its tensor-parallel group is made with it, on all its ranks.

    keep_gathered: the gathered rows of sequence parallelism stay for the weight's gradient, s·b·h elements a layer;
    False, as in Megatron: they are gathered again, but for activations that are recomputed.
    """

    keep_gathered = False

    def __init__(self, *arguments: Any, config: Any, **rest: Any):
        accumulate = config.gradient_accumulation_fusion
        if accumulate:  # Megatron's constructor would ask for an extension that is not needed here
            plain = copy.copy(config)
            plain.gradient_accumulation_fusion = False
        super().__init__(*arguments, config=plain if accumulate else config, **rest)
        self.config = config
        self.gradient_accumulation_fusion = accumulate and megatron._grad_accum_fusion_available
        if _with_flux(self):
            World.of_group(self.tp_group)

    def _forward_impl(self, input: Tensor, weight: Tensor, *arguments: Any, **rest: Any) -> Tensor:
        gathers, reduces = rest["sequence_parallel"], rest["allreduce_dgrad"]
        if not _with_flux(self) or rest["grad_output_buffer"] is not None or not (gathers or reduces):
            return super()._forward_impl(input, weight, *arguments, **rest)
        world, rows = World.of_group(self.tp_group), input.flatten(0, -2)
        if gathers:
            y = torch_ops.all_gather_gemm(rows, weight, rest["bias"], world=world, keep=self.keep_gathered)
        else:
            y = torch_ops.column_linear(rows, weight, rest["bias"], world=world)
        return y.view(-1, *input.shape[1:-1], y.size(-1))


class RowParallelLinear(megatron.RowParallelLinear):
    """Megatron's row-parallel layer; the world of its tensor-parallel group is made with it, on all its ranks."""

    def __init__(self, *arguments: Any, **rest: Any):
        super().__init__(*arguments, **rest)
        if _with_flux(self):
            World.of_group(self.tp_group)

    def forward(self, input_: Tensor) -> tuple[Tensor, Tensor | None]:
        if not _with_flux(self):
            return super().forward(input_)
        x = input_
        if not self.input_is_parallel:
            x = megatron.scatter_to_tensor_model_parallel_region(x, group=self.tp_group)
        world, rows = World.of_group(self.tp_group), x.flatten(0, -2)
        operator = torch_ops.gemm_reduce_scatter if self.sequence_parallel else torch_ops.gemm_all_reduce
        y = operator(rows, self.weight, world=world)
        y = y.view(-1, *x.shape[1:-1], y.size(-1))
        # The bias is added here: with sequence parallelism Megatron sums its gradient over the ranks by itself.
        if self.skip_bias_add or self.bias is None:
            return y, self.bias if self.skip_bias_add else None
        return y + self.bias, None


_OURS = {megatron.ColumnParallelLinear: ColumnParallelLinear, megatron.RowParallelLinear: RowParallelLinear}


def with_flux(spec: Any) -> Any:
    """A copy of a Megatron spec (ModuleSpec, or submodules within) with these classes for Megatron's linear layers."""
    if isinstance(spec, type):
        return _OURS.get(spec, spec)
    if isinstance(spec, (list, tuple)):
        return type(spec)(with_flux(one) for one in spec)
    if not dataclasses.is_dataclass(spec):
        return spec
    found = copy.copy(spec)
    for field in dataclasses.fields(spec):
        setattr(found, field.name, with_flux(getattr(spec, field.name)))
    return found
