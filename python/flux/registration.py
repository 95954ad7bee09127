"""How operators become torch's: a kernel, shapes for the compiler and a gradient, by a short way through its dispatcher.

torch.library.custom_op and register_autograd do the same with several Python frames and a schema to read in each call
(docs/integrating.md has the figures). Schemas here have no default values, so a kernel gets all its arguments in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import profiler

_library = torch.library.Library("flux", "FRAGMENT")
_PLAIN = {Tensor, torch.nn.Parameter, type(None)}


def register(kernel: Callable, fake: Callable, setup: Callable | None = None, backward: Callable | None = None) -> Callable:
    """Makes torch.ops.flux.NAME of a function _NAME with annotations. With a gradient, its tensors come first: x, weight,
    bias or None. Returns what calls it, around the dispatcher where no compiler, profiler or mode looks on.

    fake: of the same arguments, results of the right shape without data. setup(ctx, arguments, result) and
    backward(ctx, *gradients): as of torch.autograd.Function.
    """
    name = kernel.__name__.removeprefix("_")
    tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)
    _library.define(name + torch.library.infer_schema(kernel, mutates_args=()), tags=tags)
    _library.impl(name, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"flux::{name}", fake, lib=_library)
    operator = getattr(torch.ops.flux, name).default
    if setup is None or backward is None:
        return operator

    def run(arguments: tuple) -> Any:
        """The kernel itself where nobody looks on; with fake tensors, modes and subclasses what the dispatcher says."""
        x, weight, bias = arguments[:3]
        if (type(x) in _PLAIN and type(weight) in _PLAIN and type(bias) in _PLAIN and not x.is_meta
                and not torch._C._len_torch_dispatch_stack()):
            return kernel(*arguments)
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments)

    class Gradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            result = run(arguments)
            setup(ctx, arguments, result)
            return result

    Gradient.backward = staticmethod(backward)  # type: ignore[assignment]

    def with_gradient(*arguments: Any) -> Any:
        x, weight, bias = arguments[:3]
        if ((x.requires_grad or weight.requires_grad or bias is not None and bias.requires_grad)
                and torch.is_grad_enabled()):
            return Gradient.apply(*arguments)
        return run(arguments)

    def call(*arguments: Any) -> Any:
        if torch.compiler.is_compiling() or profiler._is_profiler_enabled or torch._C._len_torch_dispatch_stack():
            return operator(*arguments)
        return with_gradient(*arguments)

    _library.impl(name, with_gradient, "Autograd")
    return call
