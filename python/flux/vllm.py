"""vLLM's row-parallel layers as one operator with the all-reduce behind them: GEMM+AR.

A plug-in of vLLM (entry point vllm.general_plugins), so `pip install` is all: vLLM calls `register` in each of its
processes. FLUX=off, or VLLM_PLUGINS without flux, leaves vLLM's own layers. Column-parallel layers communicate nothing in
vLLM and stay as they are. Layers with quantised weights, whose results are not reduced, or whose input is whole stay too.

The operator is made with the layers, for as many rows as vLLM schedules in a step, so its memory is there when vLLM
measures what is left for its cache, and nothing is allocated while graphs are captured. It is a custom operator of torch
with a fake kernel: compilation goes through it, whole or piecewise.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .operators import GemmAllReduce, cached
from .world import World, switched_off

_ours: list[type] = []  # vLLM may load its plug-ins more than once


def _layer(linear: Any, world_of_tp: Any, max_rows: Any) -> type:
    class FluxRowParallelLinear(linear.RowParallelLinear):
        """vLLM's layer; what GEMM+AR has no part in is vLLM's own."""

        def __init__(self, *arguments: Any, **rest: Any):
            super().__init__(*arguments, **rest)
            self.flux_world: World | None = None
            if (self.tp_size > 1 and self.reduce_results and self.input_is_parallel
                    and type(self.quant_method) is linear.UnquantizedLinearMethod):
                self.flux_world = world_of_tp()
                cached(self.flux_world, GemmAllReduce, max_rows(), self.output_size, self.params_dtype)

        def forward(self, input_: Tensor) -> Any:
            if self.flux_world is None:
                return super().forward(input_)
            bias = None if self.skip_bias_add else self.bias
            y = torch.ops.flux.gemm_all_reduce(input_.flatten(0, -2), self.weight, bias, self.flux_world.handle, False)
            y = y.view(*input_.shape[:-1], self.output_size)
            return (y, self.bias if self.skip_bias_add else None) if self.return_bias else y

    return FluxRowParallelLinear


def register() -> None:
    """Puts FLUX's layer in the place of vLLM's RowParallelLinear, in layers made from now on."""
    if switched_off() or _ours:
        return
    from vllm.config import get_current_vllm_config
    from vllm.distributed.parallel_state import get_tp_group
    from vllm.model_executor.layers import linear

    from . import torch_ops  # noqa: F401  (the operators)

    def world_of_tp() -> World:
        group = get_tp_group()
        return World.of_group(group.cpu_group, group.device)

    def max_rows() -> int:
        return get_current_vllm_config().scheduler_config.max_num_batched_tokens

    _ours.append(linear.RowParallelLinear.register_oot(_layer(linear, world_of_tp, max_rows)))
