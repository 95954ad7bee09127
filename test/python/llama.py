"""A small Llama, unsharded or out of flux.nn's layers, with the same names, and what torchrun starts to compare them."""

import os

import place
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, silu

from flux.nn import ParallelAttention, ParallelMLP, full_state_dict
from flux.torch_ops import gather_rows, scatter_rows

HIDDEN, INNER, HEADS, KEY_HEADS, LAYERS, WORDS, LENGTH = 32, 96, 8, 4, 2, 40, 12


class Attention(nn.Module):
    """The unsharded counterpart of ParallelAttention."""

    def __init__(self, dtype):
        super().__init__()
        head, rest = HIDDEN // HEADS, {"bias": False, "dtype": dtype}
        self.q_proj = nn.Linear(HIDDEN, HIDDEN, **rest)
        self.k_proj = nn.Linear(HIDDEN, KEY_HEADS * head, **rest)
        self.v_proj = nn.Linear(HIDDEN, KEY_HEADS * head, **rest)
        self.o_proj = nn.Linear(HIDDEN, HIDDEN, **rest)

    def project(self, x):
        return self.q_proj(x), self.k_proj(x), self.v_proj(x)


class MLP(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(HIDDEN, INNER, bias=False, dtype=dtype) for _ in range(2))
        self.down_proj = nn.Linear(INNER, HIDDEN, bias=False, dtype=dtype)

    def forward(self, x):
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, dtype, world, sequence_parallel):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(HIDDEN, dtype=dtype) for _ in range(2))
        rest = {"sequence_parallel": sequence_parallel, "dtype": dtype}
        self.attention = ParallelAttention(HIDDEN, HEADS, world, key_heads=KEY_HEADS, **rest) if world else Attention(dtype)
        self.mlp = ParallelMLP(HIDDEN, INNER, world, **rest) if world else MLP(dtype)

    def forward(self, x, cache):
        """x [tokens, HIDDEN], of one sequence."""
        head = HIDDEN // HEADS
        q, k, v = (t.view(t.size(0), -1, head).transpose(0, 1) for t in self.attention.project(self.norms[0](x)))
        if cache is not None:
            k, v = (torch.cat(pair, 1) for pair in zip(cache, (k, v))) if cache else (k, v)
            cache[:] = [k, v]
        group = q.size(0) // k.size(0)
        scores = q @ k.repeat_interleave(group, 0).transpose(1, 2) / head**0.5
        ahead = torch.ones(q.size(1), k.size(1), dtype=torch.bool).triu(k.size(1) - q.size(1) + 1)
        weights = scores.masked_fill(ahead, float("-inf")).softmax(-1)
        y = (weights @ v.repeat_interleave(group, 0)).transpose(0, 1).flatten(1)
        x = x + self.attention.o_proj(y)
        return x + self.mlp(self.norms[1](x))


class Llama(nn.Module):
    def __init__(self, dtype, world=None, sequence_parallel=False):
        super().__init__()
        self.world, self.sequence_parallel = world, sequence_parallel
        self.words = nn.Embedding(WORDS, HIDDEN, dtype=dtype)
        self.blocks = nn.ModuleList(Block(dtype, world, sequence_parallel) for _ in range(LAYERS))
        self.last = nn.RMSNorm(HIDDEN, dtype=dtype)
        self.head = nn.Linear(HIDDEN, WORDS, bias=False, dtype=dtype)

    def forward(self, tokens, caches=(None,) * LAYERS):
        x = self.words(tokens)
        if self.sequence_parallel:
            x = scatter_rows(x, self.world)
        for block, cache in zip(self.blocks, caches):
            x = block(x, cache)
        if self.sequence_parallel:
            x = gather_rows(x, self.world, len(tokens))
        return self.head(self.last(x))


def steps(model, count, data):
    optimizer, losses = torch.optim.SGD(model.parameters(), 0.1), []
    for i in range(count):
        optimizer.zero_grad()
        logits = model(data[i, :-1])
        loss = cross_entropy(logits.to(torch.promote_types(logits.dtype, torch.float32)), data[i, 1:])
        loss.backward()
        if model.sequence_parallel:  # what every rank holds whole has seen this rank's rows alone
            shared = [p for block in model.blocks for p in block.norms.parameters()]
            for parameter in shared:
                dist.all_reduce(parameter.grad, group=model.world.group)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def generate(model, count, tokens):
    """Token by token, each step by what the caches hold: the logits of every step. tokens: what is fed behind the first
    three, or None: what the model likes best."""
    caches, fed, found = [[] for _ in range(LAYERS)], torch.tensor([1, 2, 3]), []
    with torch.no_grad():
        for i in range(count):
            found.append(model(fed, caches)[-1])
            fed = found[-1].argmax(-1, keepdim=True) if tokens is None else tokens[i:i + 1]
    return torch.stack(found)


def check(mode, ranks, count, dtypes):
    os.environ["FLUX"] = "off" if mode == "off" else "on"
    world = place.world_of(ranks)
    data = torch.randint(WORDS, (50, LENGTH + 1), generator=torch.Generator().manual_seed(5), device="cpu")
    data = data.to(place.ON)
    for dtype, bound, bound_of_state in dtypes:
        torch.manual_seed(7)
        whole = Llama(dtype)
        ours = Llama(dtype, world, mode == "sequence")
        ours.load_state_dict(whole.state_dict())
        losses, wanted = steps(ours, count, data), steps(whole, count, data)
        error = ((losses - wanted).abs() / wanted).max().item()
        assert error <= bound, (dtype, error)
        assert wanted[-1] != wanted[0]
        again = full_state_dict(ours, world)
        assert again.keys() == whole.state_dict().keys()
        for name, value in whole.state_dict().items():
            assert place.error(again[name], value) <= bound_of_state, (dtype, name)
        if mode != "sequence":
            logits = generate(whole, min(count, 20), None)
            assert place.error(generate(ours, len(logits), logits.argmax(-1)), logits) <= bound
            if not place.CUDA:
                assert torch.equal(generate(ours, 20, None).argmax(-1), logits.argmax(-1))


def main():
    place.start()
    modes = [("sequence", 4), ("whole", 4), ("sequence", 2), ("whole", 2), ("off", 2)]
    if dist.get_world_size() == 2:
        modes = modes[2:]
    dtypes = [(torch.float16, 1e-2, 1e-2)] if place.CUDA else [(torch.float64, 1e-9, 1e-7), (torch.float32, 1e-4, 1e-3)]
    for mode, ranks in modes:
        check(mode, ranks, 8 if place.SHARED else 50, dtypes)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
