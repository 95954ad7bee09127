"""Hugging Face models, each linear layer of their decoder layers replaced by a tensor-parallel one.

Known by the names of their modules: decoder layers of the Llama kind (self_attn with q_proj, k_proj, v_proj, o_proj; mlp
with gate_proj, up_proj, down_proj: Llama, Qwen2, Qwen3, Mistral and others) and of GPT-2's (attn with c_attn, c_proj;
mlp with c_fc, c_proj). Embeddings and the head stay whole on every rank.

A batch of many rows runs sequence-parallel: between layers a rank holds its part of all b·s rows, as [1, m_r, hidden];
column-parallel layers gather them and row-parallel ones scatter their sums. A small batch, as in decoding, is whole on
every rank, and row-parallel layers all-reduce.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .errors import InvalidError, UnsupportedError
from .nn import ColumnParallelLinear, RowParallelLinear
from .sharding import Sharded, named_blocks
from .torch_ops import gather_rows, scatter_rows
from .world import World

_LLAMA_ATTENTION, _LLAMA_MLP = ("q_proj", "k_proj", "v_proj", "o_proj"), ("gate_proj", "up_proj", "down_proj")
_GPT2_ATTENTION, _GPT2_MLP = ("c_attn", "c_proj"), ("c_fc", "c_proj")


class _Flow:
    """What the layers of one model share of the forward pass under way: the batch, and whether its rows are divided."""

    def __init__(self, world: World, from_rows: int):
        self.world, self.from_rows = world, from_rows
        self.batch: tuple[int, int] = (0, 0)
        self.divided = False

    def begin(self, x: Tensor) -> Tensor:
        """x [b, s, hidden], what the first layer gets."""
        self.batch = (x.size(0), x.size(1))
        self.divided = x.size(0) * x.size(1) >= self.from_rows
        return scatter_rows(x.flatten(0, 1), self.world)[None] if self.divided else x

    def end(self, x: Tensor) -> Tensor:
        if not self.divided:
            return x
        return gather_rows(x.flatten(0, 1), self.world, self.batch[0] * self.batch[1]).view(*self.batch, -1)

    def sum_gradient(self, parameter: nn.Parameter, always: bool) -> None:
        """Every rank's part of the rows (or of the heads: always) gave a part of this whole parameter's gradient."""

        def total(gradient: Tensor) -> Tensor:
            if self.divided or always:
                gradient = gradient.contiguous().clone()
                dist.all_reduce(gradient, group=self.world.group)
            return gradient

        wanted = parameter.requires_grad
        parameter.requires_grad_(True).register_hook(total)
        parameter.requires_grad_(wanted)


class _Column(ColumnParallelLinear):
    flow: _Flow

    def forward(self, x: Tensor) -> Tensor:
        """x [1, m_r, in] or, undivided, [b, s, in] -> [b, s, out_r]."""
        self.sequence_parallel = self.flow.divided
        b, s = self.flow.batch
        return super().forward(x.flatten(0, 1), b * s).view(b, s, -1)


class _Row(RowParallelLinear):
    flow: _Flow

    def forward(self, x: Tensor) -> Tensor:
        """x [b, s, in_r] -> [1, m_r, out] or, undivided, [b, s, out]."""
        self.sequence_parallel = self.flow.divided
        y = super().forward(x.flatten(0, 1))
        return y[None] if self.flow.divided else y.view(*self.flow.batch, -1)


class _Part(nn.Module):
    """Stands where a projection was that is now part of a wider one: its columns."""

    def __init__(self, first: int, size: int):
        super().__init__()
        self.first, self.size = first, size

    def forward(self, x: Tensor) -> Tensor:
        return x.narrow(-1, self.first, self.size)


def _shard(kind: type[Sharded], flow: _Flow, linears: Sequence[Any], blocks: Sequence[int], unit: int) -> Any:
    """One layer of that kind with this rank's shards of the linear layers, whose weights it puts one behind another."""
    in_out = not isinstance(linears[0], nn.Linear)  # transformers' Conv1D
    biased = [linear.bias is not None for linear in linears]
    if any(biased) != all(biased):
        raise UnsupportedError("some of the projections to be joined have a bias and some have none")
    in_features = linears[0].weight.size(0 if in_out else 1)
    sizes = (in_features, list(blocks)) if kind is _Column else (in_features, linears[0].weight.size(1 if in_out else 0))
    layer = kind(*sizes, flow.world, bias=biased[0], unit=unit, in_out=in_out, device="meta")
    layer.flow = flow
    for name in layer.shapes:
        parts = [getattr(linear, name) for linear in linears]
        whole = torch.cat([part.detach() for part in parts], -1 if in_out else 0)
        shard = layer.shards[name].cut(whole) if name in layer.shards else whole
        setattr(layer, name, nn.Parameter(shard.clone(), requires_grad=any(part.requires_grad for part in parts)))
    return layer


def _join(parent: nn.Module, name: str, names: Sequence[str], flow: _Flow, unit: int) -> None:
    """Makes the projections of these names one, which the parent's input goes through before the parent sees it."""
    linears = [getattr(parent, part) for part in names]
    layer = _shard(_Column, flow, linears, [linear.weight.size(0) for linear in linears], unit)
    setattr(parent, name, layer)
    named_blocks(parent, name, names)
    first = 0
    for part, block in zip(names, layer.shards["weight"].blocks):
        size = layer.shards["weight"].part(block, flow.world.rank)[1]
        setattr(parent, part, _Part(first, size))
        first += size

    def project(_: nn.Module, arguments: tuple, named: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        if arguments:
            return (layer(arguments[0]), *arguments[1:]), named
        return arguments, {**named, "hidden_states": layer(named["hidden_states"])}

    parent.register_forward_pre_hook(project, with_kwargs=True)


def _has(module: nn.Module, names: Iterable[str]) -> bool:
    return all(isinstance(getattr(module, name, None), nn.Module) for name in names)


def _attention(module: Any, flow: _Flow, config: Any) -> None:
    heads = config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    size = flow.world.size
    if heads % size or key_heads % size:
        raise InvalidError(f"{heads} heads and {key_heads} key heads over {size} ranks; both must divide")
    if _has(module, _LLAMA_ATTENTION):
        _join(module, "qkv_proj", _LLAMA_ATTENTION[:3], flow, module.head_dim)
        module.o_proj = _shard(_Row, flow, [module.o_proj], [], module.head_dim)
    elif _has(module, _GPT2_ATTENTION):
        module.c_attn = _shard(_Column, flow, [module.c_attn], [module.split_size] * 3, module.head_dim)
        module.c_proj = _shard(_Row, flow, [module.c_proj], [], module.head_dim)
        module.split_size //= size
    else:
        raise UnsupportedError(f"{type(module).__name__} has neither {_LLAMA_ATTENTION} nor {_GPT2_ATTENTION}")


def _mlp(module: Any, flow: _Flow) -> None:
    if _has(module, _LLAMA_MLP):
        _join(module, "gate_up_proj", _LLAMA_MLP[:2], flow, 8)
        module.down_proj = _shard(_Row, flow, [module.down_proj], [], 8)
    elif _has(module, _GPT2_MLP):
        module.c_fc = _shard(_Column, flow, [module.c_fc], [module.c_fc.weight.size(1)], 8)
        module.c_proj = _shard(_Row, flow, [module.c_proj], [], 8)
    else:
        raise UnsupportedError(f"{type(module).__name__} has neither {_LLAMA_MLP} nor {_GPT2_MLP}")


def _stack(model: nn.Module) -> tuple[nn.ModuleList, nn.Module]:
    """The decoder layers and the norm behind them."""
    for parent in model.modules():
        for layers in ("layers", "h"):
            found = getattr(parent, layers, None)
            norm = next((getattr(parent, name) for name in ("norm", "ln_f") if hasattr(parent, name)), None)
            if isinstance(found, nn.ModuleList) and len(found) and norm is not None:
                return found, norm
    raise UnsupportedError(f"{type(model).__name__} has no list of decoder layers (layers or h) beside a norm (norm or "
                           "ln_f); flux.nn has the layers to build it from")


def parallelize(model: nn.Module, world: World, *, sequence_parallel_from: int = 256) -> nn.Module:
    """Replaces the linear layers of a Hugging Face decoder model by tensor-parallel ones, in place, and returns it.

    model: whole, with the same parameters on every rank. world: of World.from_torch. sequence_parallel_from: batches of
    so many rows (b·s) are divided over the ranks between layers; 0: all. A backward pass belongs to the last forward
    pass, or to earlier ones of the same batch size and length.

    The model is called, trained and asked to generate as before, every rank with the same input; outputs and gradients
    of what every rank holds whole are the same on all. load_state_dict takes the unsharded model's state,
    flux.full_state_dict(model, world) gives it. Dropout draws on every rank for itself. Raises UnsupportedError for a
    model of another kind, InvalidError where heads do not divide.
    """
    if world.group is None:
        raise InvalidError("parallelize needs a world of torch.distributed; make it by World.from_torch")
    if not hasattr(model, "config"):
        raise UnsupportedError(f"{type(model).__name__} has no config; a model of transformers is needed")
    layers, norm = _stack(model)
    flow = _Flow(world, sequence_parallel_from)
    for layer in layers:
        attention = getattr(layer, "self_attn", None) or getattr(layer, "attn", None)
        if attention is None or not hasattr(layer, "mlp"):
            raise UnsupportedError(f"{type(layer).__name__} has no self_attn or attn, or no mlp")
        _attention(attention, flow, model.config)
        _mlp(layer.mlp, flow)
        within = set(attention.modules())
        for module in layer.modules():
            if not isinstance(module, Sharded):
                for parameter in module.parameters(recurse=False):
                    flow.sum_gradient(parameter, always=module in within)
    for parameter in norm.parameters():
        flow.sum_gradient(parameter, always=False)

    layers[0].register_forward_pre_hook(lambda _, inputs: (flow.begin(inputs[0]), *inputs[1:]))
    norm.register_forward_hook(lambda _, __, y: flow.end(y))
    return model
