"""python -m flux.bench layer|model|overhead [options]: starts its ranks by torchrun where it is not started by it."""

from __future__ import annotations

import argparse
import os
import sys

import torch
import torch.distributed as dist

from ..errors import InvalidError
from ..torch_ops import gather_rows
from ..world import World
from . import overhead
from .measure import captured, row, times, write
from .methods import LABELS, Method, make, refusal
from .stack import SHAPES, Layer, Shape

EPILOG = "methods:\n" + "\n".join(f"  {name:20} {label}" for name, label in LABELS.items())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m flux.bench", description="Times transformer layers, a training step, prefill or "
                                     "a step of decoding, by FLUX and by other ways of torch; or what Python adds to a call.",
                                     epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["layer", "model", "overhead"],
                        help="one layer, a stack of them (--layers), or a call of one rank in C++ and from Python")
    parser.add_argument("--shape", choices=list(SHAPES), action="append", help="default: all four")
    parser.add_argument("--phase", choices=["train", "prefill", "decode"], action="append", help="default: all three")
    parser.add_argument("--method", choices=list(LABELS), action="append", help="default: all")
    parser.add_argument("--tp", type=int, default=2, help="ranks (2)")
    parser.add_argument("--batch", type=int, help="sequences; default: 8, in training 1, in decoding 1, 64 and 512")
    parser.add_argument("--length", type=int, default=2048, help="tokens of a sequence; decoding has one (2048)")
    parser.add_argument("--layers", type=int, help="of a model; default: as many as it has and fit")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--cpu", action="store_true", help="on cores, fp32, the shapes made small")
    parser.add_argument("--out", metavar="FOLDER", help="writes a result file there")
    return parser.parse_args()


def output_error(method: Method, layers: list[Layer], x: torch.Tensor, m: int) -> float:
    """||y - wanted|| / ||wanted|| of the forward pass, against torch's collectives in fp64."""
    with torch.no_grad():
        mine = x.narrow(0, *method.world.rows(m)) if method.divided else x
        plain = make("vllm_style", method.world, "")
        y, wanted = mine, x.double()
        for layer in layers:
            y = layer(y, method, m)
            past = getattr(layer, "past", None)
            if past:
                layer.past = [t.double() for t in past]
            kept = {name: p.data for name, p in layer.named_parameters()}
            for parameter in layer.parameters():
                parameter.data = parameter.data.double()
            wanted = layer(wanted, plain, m)
            for name, value in kept.items():
                layer.get_parameter(name).data = value
            if past:
                layer.past = past
        y = gather_rows(y, method.world, m) if method.divided else y
        return float((y.double() - wanted).norm() / wanted.norm())


def fitting(layer: Layer, phase: str, world: World) -> int:
    """Layers whose weights, and gradients, take half of what is free on every GPU: activations need room too."""
    needed = sum(p.numel() * p.element_size() for p in layer.parameters()) * (2 if phase == "train" else 1)
    count = torch.tensor(max(1, torch.cuda.mem_get_info()[0] // 2 // needed), device="cuda")
    dist.all_reduce(count, dist.ReduceOp.MIN, group=world.group)
    return int(count)


def problem(options: argparse.Namespace, world: World, shape: Shape, phase: str, batch: int) -> list[dict]:
    cuda, decode = not options.cpu, phase == "decode"
    dtype, device = (torch.bfloat16, torch.device("cuda")) if cuda else (torch.float32, torch.device("cpu"))
    m = batch * (1 if decode else options.length)
    torch.manual_seed(world.rank)
    layers = [Layer(shape, batch, decode, world.size, dtype, device)]
    if options.what == "model":
        count = options.layers or (min(shape.layers, fitting(layers[0], phase, world)) if cuda else shape.layers)
        layers += [Layer(shape, batch, decode, world.size, dtype, device) for _ in range(count - 1)]
    torch.manual_seed(99)
    x = torch.randn(m, shape.hidden, dtype=dtype, device=device)

    def step_of(method: Method):
        def step() -> None:
            with torch.set_grad_enabled(phase == "train"):
                y = x.narrow(0, *world.rows(m)) if method.divided else x
                y = y.detach().requires_grad_(phase == "train")
                for layer in layers:
                    y = layer(y, method, m)
            if phase == "train":
                for layer in layers:
                    layer.zero_grad(set_to_none=True)
                y.backward(torch.ones_like(y))

        return captured(step) if cuda and decode else step

    names = []
    for name in options.method or LABELS:
        why = refusal(name, phase, cuda)
        if why is None:
            names.append(name)
        elif world.rank == 0:
            print(f"{shape.name} {phase}: no {name}: {why}")
    methods = {name: make(name, world, phase) for name in names}
    errors = {name: output_error(method, layers, x, m) for name, method in methods.items()}
    found = times({name: step_of(method) for name, method in methods.items()}, options.rounds, cuda, world.group)
    workload = shape.name if options.what == "layer" else f"{shape.name} x {len(layers)}"
    facts = dict(workload=workload, op=options.what, m=m, n=shape.inner, k=shape.hidden, tp=world.size, phase=phase,
                 dtype="bf16" if cuda else "fp32", link="nvlink" if cuda else "host", timing="graph" if cuda and decode else "eager")
    rows = [row(values, method=name, error=errors[name], **facts) for name, values in found.items()]
    if world.rank == 0:
        for one in rows:
            print(f"{shape.name} {phase} m={m} {one['method']}: {one['total_us']:.0f} us, error {one['error']:.1e}", flush=True)
    return rows


def main() -> None:
    options = arguments()
    if options.what == "overhead":
        rows = overhead.measure(not options.cpu, max(options.rounds, 100))
        if options.out:
            print(write(options.out, options.what, rows, not options.cpu))
        return
    if not options.cpu and torch.cuda.device_count() < options.tp:
        raise InvalidError(f"torch sees {torch.cuda.device_count()} GPUs for {options.tp} ranks; --cpu measures small shapes on cores")
    if "RANK" not in os.environ:
        os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--standalone",
                                  f"--nproc-per-node={options.tp}", "-m", "flux.bench", *sys.argv[1:]])
    if not options.cpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo" if options.cpu else "nccl")
    world, rows = World.from_torch(), []
    for name in options.shape or SHAPES:
        shape = SHAPES[name].small() if options.cpu else SHAPES[name]
        for phase in options.phase or ["train", "prefill", "decode"]:
            usual = {"train": [1], "prefill": [8], "decode": [1, 64, 512]}[phase]
            for batch in [options.batch] if options.batch else usual:
                rows += problem(options, world, shape, phase, batch)
    if options.out and world.rank == 0:
        print(write(options.out, options.what, rows, not options.cpu))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
