"""What Python adds to a call: the host's time to enqueue one (GPUs) or to do one (cores), one rank, few rows.

Each variant makes the same calls of the same operator on the same tensors: in a loop of C++, from Python with and
without `out=`, by torch's custom operator in torch.ops, by flux.torch_ops, and by that with gradients to come. A sample
is the mean of a burst, after which the GPU is waited for; all variants take turns.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .. import torch_ops
from ..operators import AllGatherGemm, GemmAllReduce, GemmReduceScatter, cached
from ..world import World
from .measure import row

BURST = 20  # a call of C++ that gets to 64 calls ahead of the GPU waits
OPERATORS: dict[str, tuple[Any, Callable]] = {
    "ag_gemm": (AllGatherGemm, torch_ops.all_gather_gemm), "gemm_rs": (GemmReduceScatter, torch_ops.gemm_reduce_scatter),
    "gemm_ar": (GemmAllReduce, torch_ops.gemm_all_reduce)}


def variants(operator: Any, by_torch: Callable, world: World, x: torch.Tensor, weight: torch.Tensor,
             out: torch.Tensor) -> dict[str, Callable[[], float]]:
    """Each makes a burst of calls and returns its microseconds."""
    leaf = weight.detach().clone().requires_grad_()
    stream = torch.cuda.current_stream().cuda_stream if x.is_cuda else 0
    gathers = isinstance(operator, AllGatherGemm)
    in_torch = getattr(torch.ops.flux, by_torch.__name__)
    last = (x.size(0), False, False) if gathers else (False,)
    more = (None, None, None, None, "none", False) if gathers else (None, None, None, None, 1e-5)

    def timed(call: Callable[[], Any]) -> Callable[[], float]:
        def burst() -> float:
            start = time.perf_counter()
            for _ in range(BURST):
                call()
            return (time.perf_counter() - start) * 1e6

        return burst

    return {"C++": lambda: operator.ours.run(x.size(0), x, weight, out, *more, False, stream, times=BURST),
            "Python, out=": timed(lambda: operator(x, weight, out=out)),
            "Python": timed(lambda: operator(x, weight)),
            "torch.ops": timed(lambda: in_torch(x, weight, None, world.handle, *last)),
            "torch_ops": timed(lambda: by_torch(x, weight, world=world)),
            "torch_ops, gradients to come": timed(lambda: by_torch(x, leaf, world=world))}


def measure(cuda: bool, rounds: int) -> list[dict[str, Any]]:
    (world,) = World.local(1, "devices" if cuda else "host", plan_cache="none")
    dtype, device = (torch.bfloat16, "cuda:0") if cuda else (torch.float32, "cpu")
    m, n, k = (8, 256, 256) if cuda else (1, 8, 8)  # on cores a call is done within it: of least work
    torch.manual_seed(0)
    x, weight = torch.randn(m, k, dtype=dtype, device=device), torch.randn(n, k, dtype=dtype, device=device)
    out = torch.empty(m, n, dtype=dtype, device=device)
    wanted, rows = x.double() @ weight.double().t(), []
    for name, (kind, by_torch) in OPERATORS.items():
        operator = cached(world, kind, m, k if kind is AllGatherGemm else n, dtype)
        bursts = variants(operator, by_torch, world, x, weight, out)
        found: dict[str, list[float]] = {variant: [] for variant in bursts}
        order = np.random.default_rng(0)
        gc.collect()
        gc.disable()
        for number in range(rounds + 5):
            for variant in order.permutation(list(bursts)):
                spent = bursts[variant]() / BURST
                if cuda:
                    torch.cuda.synchronize()
                if number >= 5:  # the first warm up
                    found[variant].append(spent)
        gc.enable()
        error = float((out.double() - wanted).norm() / wanted.norm())
        for variant, values in found.items():
            rows.append(row(np.array(values), workload="overhead", op=name, m=m, n=n, k=k, tp=1, phase="enqueue", timing="eager",
                            dtype="bf16" if cuda else "fp32", link="device" if cuda else "host", method="flux",
                            variant=variant, error=error, plan=operator.plan) | {"world": "devices" if cuda else "threads"})
            print(f"{name} {variant}: {rows[-1]['total_us']:.2f} us", flush=True)
    return rows
