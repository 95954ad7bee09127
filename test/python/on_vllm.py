"""What torchrun starts: the plug-in in a small stand-in for vLLM, which has those names of vLLM that it uses."""

import os
import sys
import types

import place
import torch
import torch.distributed as dist

import flux

MOST_ROWS = 128
BOUND = 3e-3 if place.CUDA else 1e-5
registry = {}


class UnquantizedLinearMethod:
    def apply(self, layer, x, bias):
        return torch.nn.functional.linear(x, layer.weight, bias)


class Quantized(UnquantizedLinearMethod):
    pass


class RowParallelLinear(torch.nn.Module):
    def __new__(cls, *arguments, **rest):
        return super().__new__(registry.get(cls.__name__, cls))

    @classmethod
    def register_oot(cls, layer):
        assert cls.__name__ not in registry
        registry[cls.__name__] = layer
        return layer

    def __init__(self, input_size, output_size, bias=True, input_is_parallel=True, skip_bias_add=False,
                 reduce_results=True, method=UnquantizedLinearMethod, return_bias=True):
        super().__init__()
        self.tp_rank, self.tp_size = dist.get_rank(), dist.get_world_size()
        self.output_size, self.params_dtype, self.quant_method = output_size, place.DTYPE, method()
        self.input_is_parallel, self.skip_bias_add = input_is_parallel, skip_bias_add
        self.reduce_results, self.return_bias = reduce_results, return_bias
        self.weight = torch.nn.Parameter(torch.empty(output_size, input_size // self.tp_size, dtype=place.DTYPE), requires_grad=False)
        self.bias = torch.nn.Parameter(torch.empty(output_size, dtype=place.DTYPE), requires_grad=False) if bias else None

    def forward(self, input_):
        if not self.input_is_parallel:
            input_ = input_.chunk(self.tp_size, -1)[self.tp_rank]
        y = self.quant_method.apply(self, input_, None if self.tp_rank or self.skip_bias_add else self.bias)
        if self.reduce_results:
            dist.all_reduce(y)
        return (y, self.bias if self.skip_bias_add else None) if self.return_bias else y


def stand_in():
    def module(name, **contents):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(contents)

    settings = types.SimpleNamespace(scheduler_config=types.SimpleNamespace(max_num_batched_tokens=MOST_ROWS))
    group = types.SimpleNamespace(cpu_group=dist.group.WORLD, device=torch.device(place.ON))
    for name in ("vllm", "vllm.distributed", "vllm.model_executor"):
        module(name)
    module("vllm.config", get_current_vllm_config=lambda: settings)
    module("vllm.distributed.parallel_state", get_tp_group=lambda: group)
    linear = dict(RowParallelLinear=RowParallelLinear, UnquantizedLinearMethod=UnquantizedLinearMethod)
    module("vllm.model_executor.layers.linear", **linear)
    module("vllm.model_executor.layers", linear=sys.modules["vllm.model_executor.layers.linear"])


def made(**rest):
    layer = RowParallelLinear(64, 48, **rest)
    torch.manual_seed(1)
    layer.weight.copy_(torch.randn(48, 64).chunk(layer.tp_size, 1)[layer.tp_rank])
    if layer.bias is not None:
        layer.bias.copy_(torch.randn(48))
    return layer


def main():
    place.start()
    stand_in()
    import flux.vllm

    cases = [{}, {"bias": False}, {"skip_bias_add": True}, {"return_bias": False}, {"reduce_results": False, "bias": False},
             {"method": Quantized}]
    plain = [made(**case) for case in cases]
    os.environ["FLUX"] = "off"
    flux.vllm.register()
    assert type(made()) is RowParallelLinear
    os.environ["FLUX"] = "on"
    flux.vllm.register()
    flux.vllm.register()
    ours = [made(**case) for case in cases]
    assert [layer.flux_world is not None for layer in ours] == [True] * 4 + [False] * 2
    (kept,) = ours[0].flux_world.operators.values()  # before any call, for all layers of this width
    assert kept[0] >= MOST_ROWS
    torch.manual_seed(2)
    x = torch.randn(2, 5, 64, dtype=place.DTYPE).chunk(dist.get_world_size(), -1)[dist.get_rank()]
    for one, other in zip(ours, plain):
        for found, wanted in zip(one(x), other(x)):
            assert (found is None and wanted is None) or place.error(found, wanted) < BOUND, (found, wanted)
    compiled = torch.compile(ours[0], fullgraph=True, backend="aot_eager")
    assert place.error(compiled(x)[0], plain[0](x)[0]) < BOUND
    assert list(ours[0].flux_world.operators.values()) == [kept], "no call made an operator"
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
