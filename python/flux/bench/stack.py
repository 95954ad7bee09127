"""Transformer layers of known models, of this rank's weights, out of a method's two products."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import gelu, rms_norm, scaled_dot_product_attention, silu

from .methods import Method


@dataclass(frozen=True)
class Shape:
    name: str
    hidden: int
    inner: int
    heads: int
    key_heads: int
    gated: bool
    layers: int

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    def small(self) -> Shape:
        """The same kind of layer, of a size for cores: hidden 256 in 16 heads."""
        return replace(self, name=self.name + "-small", hidden=256, inner=256 * self.inner // self.hidden, heads=16,
                       key_heads=16 if self.key_heads == self.heads else 8, layers=2)


SHAPES = {shape.name: shape for shape in (
    Shape("gpt3-175b", 12288, 49152, 96, 96, False, 96), Shape("llama2-70b", 8192, 28672, 64, 8, True, 80),
    Shape("llama3-8b", 4096, 14336, 32, 8, True, 32), Shape("llama3-70b", 8192, 28672, 64, 8, True, 80))}
PAST = 1024  # tokens in the cache before a step of decoding


class Layer(torch.nn.Module):
    """Attention and MLP behind a norm each; x as the method divides it."""

    def __init__(self, shape: Shape, batch: int, decode: bool, ranks: int, dtype: torch.dtype, device: torch.device):
        super().__init__()
        self.shape, self.batch, self.decode = shape, batch, decode
        q, kv, inner = shape.hidden // ranks, shape.key_heads * shape.head // ranks, shape.inner // ranks
        self.sizes = [q, kv, kv]
        up = 2 * inner if shape.gated else inner
        sizes = {"qkv": (q + 2 * kv, shape.hidden), "out": (shape.hidden, q), "up": (up, shape.hidden), "down": (shape.hidden, inner)}
        for name, (rows, columns) in sizes.items():
            values = torch.randn(rows, columns, dtype=dtype, device=device) * shape.hidden**-0.5
            self.register_parameter(name, torch.nn.Parameter(values))
        if decode:
            past = (batch, shape.key_heads // ranks, PAST, shape.head)
            self.past = [torch.randn(past, dtype=dtype, device=device) for _ in range(2)]

    def attend(self, qkv: Tensor) -> Tensor:
        q, k, v = (t.view(self.batch, -1, t.size(-1) // self.shape.head, self.shape.head).transpose(1, 2)
                   for t in qkv.split(self.sizes, -1))
        if self.decode:
            k, v = (torch.cat(pair, 2) for pair in zip(self.past, (k, v)))
        y = scaled_dot_product_attention(q, k, v, is_causal=not self.decode, enable_gqa=q.size(1) != k.size(1))
        return y.transpose(1, 2).reshape(qkv.size(0), -1)

    def forward(self, x: Tensor, method: Method, m: int) -> Tensor:
        width = [self.shape.hidden]
        x = x + method.row(self.attend(method.column(rms_norm(x, width), self.qkv, m)), self.out)
        hidden = method.column(rms_norm(x, width), self.up, m)
        if self.shape.gated:
            gate, up = hidden.chunk(2, -1)
            hidden = silu(gate) * up
        else:
            hidden = gelu(hidden)
        return x + method.row(hidden, self.down)
