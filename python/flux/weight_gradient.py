"""The gradient of a weight: a plain product of torch, which opens cuBLASLt on GPUs, accumulated where there is a place.

A parameter with an attribute `main_grad`, as Megatron's, gets its gradient added there, in the type of that tensor
(fp32 sums of bf16 products); what autograd then hands on is None, or, where the parameter has `grad_added_to_main_grad`,
an empty tensor that says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

_streams: dict[torch.cuda.Stream, torch.cuda.Stream] = {}  # one beside each, as ranks that share a GPU have one each


def weight_gradient(weight: Tensor, dy: Tensor, x: Tensor, in_out: bool) -> Tensor | None:
    """dyᵀ x, or xᵀ dy where the weight is [in, out]; None where it went to weight.main_grad and nobody asks."""
    a, b = (x.t(), dy) if in_out else (dy.t(), x)
    main = getattr(weight, "main_grad", None)
    if main is None:
        return a @ b
    if main.dtype is a.dtype:
        main.addmm_(a, b)
    elif a.is_cuda:
        main.add_(torch.mm(a, b, out_dtype=main.dtype))
    else:
        main.addmm_(a.to(main.dtype), b.to(main.dtype))
    if not hasattr(weight, "grad_added_to_main_grad"):
        return None
    weight.grad_added_to_main_grad = True
    filled = torch.zeros_like if getattr(weight, "zero_out_wgrad", False) else torch.empty_like
    return filled(weight)


class Beside:
    """A stream beside torch's current one of this GPU, for a weight's gradient while a fused operator communicates.

    Made before the operator is called, so that what runs `within` waits for what was there, not for the operator;
    `join` makes the current stream wait for it. On the host, and where the compiler looks on, everything is in order.
    """

    def __init__(self, like: Tensor):
        self.stream = None
        if like.is_cuda and type(like) is Tensor:
            current = torch.cuda.current_stream(like.device)
            if current not in _streams:
                _streams[current] = torch.cuda.Stream(like.device)
            self.stream = _streams[current]
            self.stream.wait_stream(current)

    @contextlib.contextmanager
    def within(self) -> Iterator[None]:
        if self.stream is None:
            yield
            return
        with torch.cuda.stream(self.stream):
            yield

    def join(self) -> None:
        if self.stream is not None:
            torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)
