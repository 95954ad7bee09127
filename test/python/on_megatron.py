"""What torchrun starts on four ranks: Megatron's tensor-parallel layers and ours in their place, two by two on gloo."""

import collections
import tempfile

import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing, parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.tensor_parallel import layers as theirs
from megatron.core.transformer import TransformerConfig
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import flux
from flux import megatron as ours

HIDDEN, INNER, LENGTH, BATCH = 32, 64, 6, 3


def config(sequence_parallel, dtype=torch.float32, **rest):
    return TransformerConfig(num_layers=1, hidden_size=HIDDEN, num_attention_heads=4, tensor_model_parallel_size=2,
                             use_cpu_initialization=True, sequence_parallel=sequence_parallel, params_dtype=dtype, **rest)


class MLP(torch.nn.Module):
    def __init__(self, kind, settings, skip_bias_add=False):
        super().__init__()
        rest = dict(config=settings, init_method=torch.nn.init.xavier_normal_, bias=True, skip_bias_add=skip_bias_add)
        self.up = kind.ColumnParallelLinear(HIDDEN, INNER, **rest)
        self.down = kind.RowParallelLinear(INNER, HIDDEN, input_is_parallel=True, **rest)

    def forward(self, x):
        y, bias = self.up(x)
        y, bias_down = self.down(torch.nn.functional.gelu(y if bias is None else y + bias))
        return y if bias_down is None else y + bias_down


def pair(settings, **rest):
    """The same layers twice, the first Megatron's."""
    torch.manual_seed(11)
    mine = [MLP(kind, settings, **rest) for kind in (theirs, ours)]
    with torch.no_grad():
        for parameter in mine[0].parameters():
            parameter.normal_(0, 0.2)
        down = mine[0].down  # whose bias is the same on every rank of the group
        dist.broadcast(down.bias, dist.get_global_rank(down.tp_group, 0), group=down.tp_group)
    mine[1].load_state_dict(mine[0].state_dict())
    return mine


def batch(sequence_parallel, dtype=torch.float32, seed=0):
    x = torch.randn(LENGTH, BATCH, HIDDEN, generator=torch.Generator().manual_seed(seed)).to(dtype)
    if sequence_parallel:
        x = x.chunk(2)[parallel_state.get_tensor_model_parallel_rank()].clone()
    return x.requires_grad_()


def step(model, x):
    """A pass over one micro-batch; what each leaf got."""
    y = model(x)
    y.square().sum().backward()
    return y.detach(), x.grad


def close(found, wanted, bound=1e-5):
    torch.testing.assert_close(found, wanted, rtol=bound, atol=bound)


def check_values(sequence_parallel):
    for skip_bias_add in (False, True):
        plain, fused = pair(config(sequence_parallel), skip_bias_add=skip_bias_add)
        for seed in range(2):  # gradients of two micro-batches add up
            for a, b in zip(step(fused, batch(sequence_parallel, seed=seed)), step(plain, batch(sequence_parallel, seed=seed))):
                close(a, b)
        for (name, a), b in zip(fused.named_parameters(), plain.parameters()):
            close(a.grad, b.grad, 1e-4)


def check_frozen(sequence_parallel):
    plain, fused = pair(config(sequence_parallel))
    for model in (plain, fused):
        for layer in (model.up, model.down):
            layer.weight.requires_grad_(False)
    close(step(fused, batch(sequence_parallel))[1], step(plain, batch(sequence_parallel))[1])
    assert fused.up.weight.grad is None


def check_main_grad(sequence_parallel, dtype, bound):
    """fp32 sums of two micro-batches, and what autograd hands on says that they are there."""
    plain, fused = pair(config(sequence_parallel, dtype))
    fused_too = MLP(ours, config(sequence_parallel, dtype, gradient_accumulation_fusion=True))
    fused_too.load_state_dict(plain.state_dict())
    for model in (fused, fused_too):
        for layer in (model.up, model.down):
            layer.weight.main_grad = torch.zeros_like(layer.weight, dtype=torch.float32)
            layer.weight.grad_added_to_main_grad = False
    for seed in range(2):
        for model in (plain, fused, fused_too):
            step(model, batch(sequence_parallel, dtype, seed))
    for name in ("up", "down"):
        wanted = getattr(plain, name).weight.grad.float()
        for model in (fused, fused_too):
            weight = getattr(model, name).weight
            assert weight.grad_added_to_main_grad and weight.main_grad.dtype is torch.float32
            error = (weight.main_grad - wanted).norm() / wanted.norm()
            assert error < bound, (name, dtype, error)


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        if function.namespace == "flux":
            self.calls[function._opname] += 1
        return function(*arguments, **(named or {}))


def check_recomputation():
    plain, fused = pair(config(True))
    with Count() as count:
        x = batch(True)
        y = fused(x)
        y.square().sum().backward()
    # The rows again for the weight's gradient; the row-parallel layer's gradient is AG+GEMM, the other's GEMM+RS.
    assert count.calls == {"all_gather_gemm": 2, "all_gather": 1, "gemm_reduce_scatter": 2}, count.calls
    wanted = {name: p.grad.clone() for name, p in fused.named_parameters()}
    for reentrant in (False, True):
        for parameter in fused.parameters():
            parameter.grad = None
        with Count() as count:
            again = batch(True)
            checkpoint(fused, again, use_reentrant=reentrant).square().sum().backward()
        # Once more forwards, with rows that are kept: nothing is gathered for the weight alone.
        assert count.calls["all_gather"] == 0 and count.calls["all_gather_gemm"] == 3, count.calls
        close(again.grad, x.grad)
        for name, parameter in fused.named_parameters():
            close(parameter.grad, wanted[name])


def check_checkpoints():
    plain, fused = pair(config(True))
    metadata = {"dp_cp_group": parallel_state.get_data_parallel_group(with_context_parallel=True)}

    def state(model):
        return {**model.up.sharded_state_dict("up.", metadata=metadata),
                **model.down.sharded_state_dict("down.", metadata=metadata)}

    for (key, a), (other, b) in zip(state(fused).items(), state(plain).items()):
        assert key == other and getattr(a, "global_shape", 0) == getattr(b, "global_shape", 0), key
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else ""]
    dist.broadcast_object_list(folder)
    dist_checkpointing.save(state(fused), folder[0])
    again = MLP(ours, config(True))
    loaded = dist_checkpointing.load(state(again), folder[0])
    for name, parameter in again.named_parameters():
        close(loaded[name], fused.get_parameter(name), 0)


def check_specs():
    spec = get_gpt_layer_local_spec()
    found = ours.with_flux(spec)
    kinds = [found.submodules.self_attention.submodules.linear_qkv, found.submodules.self_attention.submodules.linear_proj,
             found.submodules.mlp.submodules.linear_fc1, found.submodules.mlp.submodules.linear_fc2]
    assert kinds == [ours.ColumnParallelLinear, ours.RowParallelLinear] * 2, kinds
    assert spec.submodules.mlp.submodules.linear_fc1 is theirs.ColumnParallelLinear
    expert = ours.ColumnParallelLinear(HIDDEN, INNER, config=config(False), init_method=torch.nn.init.zeros_, is_expert=True,
                                       skip_bias_add=True)
    assert expert.explicit_expert_comm and torch.equal(expert(batch(False))[0], torch.zeros(LENGTH, BATCH, INNER // 2))


def main():
    dist.init_process_group("gloo")
    # Megatron asks for the current GPU by its number, and waits for it: here that is the host.
    torch.cuda.current_device, torch.cuda.synchronize = lambda: torch.device("cpu"), lambda: None
    for pipeline in (1, 2):  # data-parallel groups beside, then pipeline groups
        parallel_state.initialize_model_parallel(tensor_model_parallel_size=2, pipeline_model_parallel_size=pipeline)
        for sequence_parallel in (True, False):
            check_values(sequence_parallel)
            check_frozen(sequence_parallel)
            check_main_grad(sequence_parallel, torch.float32, 1e-5)
            check_main_grad(sequence_parallel, torch.bfloat16, 2e-2)
        check_recomputation()
        check_specs()
        if pipeline == 1:
            check_checkpoints()
        world = flux.World.of_group(parallel_state.get_tensor_model_parallel_group())
        assert world is ours.World.of_group(parallel_state.get_tensor_model_parallel_group()) and world.size == 2
        parallel_state.destroy_model_parallel()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
