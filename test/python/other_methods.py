"""What torchrun starts: the ways that FLUX is compared with, results and gradients beside those of the whole product."""

import place
import torch
import torch.distributed as dist

from flux.bench.methods import make


def check(name, world, m, n=48, k=32):
    torch.manual_seed(4)
    x, up, down = (torch.randn(shape, dtype=place.DTYPE) for shape in [(m, k), (n, k), (k, n)])
    method = make(name, world, "train")
    rows, columns = slice(*_edges(world.rows(m))), slice(*_edges(world.columns(n)))
    mine = [t.clone().requires_grad_() for t in (x[rows] if method.divided else x, up[columns], down[:, columns])]
    y = method.row(method.column(mine[0], mine[1], m), mine[2])
    exact = [t.double().requires_grad_() for t in (x, up, down)]
    wanted = exact[0] @ exact[1].t() @ exact[2].t()
    bound = 5e-3 if place.CUDA else 1e-5
    kept = rows if method.divided else slice(None)
    assert place.error(y, wanted[kept]) < bound, name
    found = torch.autograd.grad(y.sum(), mine)
    wanted = torch.autograd.grad(wanted.sum(), exact)
    for a, b in zip(found, (wanted[0][kept], wanted[1][columns], wanted[2][:, columns])):
        assert place.error(a, b) < bound, name


def _edges(part):
    return part[0], part[0] + part[1]


def main():
    place.start()
    world = place.world_of(4)
    for name in ("flux", "megatron_style", "vllm_style", "chunked"):
        if name == "chunked" and place.SHARED:
            continue  # gloo sends no GPU memory
        for m in (8, 11):
            check(name, world, m)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
