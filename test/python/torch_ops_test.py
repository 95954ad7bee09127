"""torch's custom operators: values, gradients, compilation. Ranks are threads, on the host engine or of one GPU (place.py)."""

import types

import pytest

torch = pytest.importorskip("torch")
import place  # noqa: E402

import flux  # noqa: E402
from flux import torch_ops  # noqa: E402

OPERATORS = ["all_gather_gemm", "gathered_again", "gemm_reduce_scatter", "gemm_all_reduce", "column_linear"]


def split(total, ranks, unit=1):
    edges = [r * (total // unit) // ranks * unit for r in range(ranks)] + [total]
    return [slice(a, b) for a, b in zip(edges, edges[1:])]


def call(name, world, x, w, b, m, in_out):
    if name in ("all_gather_gemm", "gathered_again"):
        return torch_ops.all_gather_gemm(x, w, b, world=world, m=m, in_out=in_out, keep=name == "all_gather_gemm")
    return getattr(torch_ops, name)(x, w, b, world=world, in_out=in_out)


class AllRanks(torch.autograd.Function):
    """One function of the whole x, w and b, out of what every rank makes of its part: what gradcheck can check."""

    @staticmethod
    def forward(ctx, name, worlds, in_out, x, w, b):
        m, n, k, ranks = x.size(0), b.numel(), x.size(1), len(worlds)
        rows, by_n, by_k = split(m, ranks), split(n, ranks, 8), split(k, ranks, 8)

        def part(world):
            r = world.rank
            column = name in ("all_gather_gemm", "gathered_again", "column_linear")
            gathers = column and name != "column_linear"
            at_x = (rows[r], slice(None)) if gathers else (slice(None), slice(None) if column else by_k[r])
            at_w = (by_n[r], slice(None)) if column else (slice(None), by_k[r])
            at_w = at_w[::-1] if in_out else at_w
            at_b = by_n[r] if column else slice(None)
            with torch.enable_grad():
                leaves = [t[at].detach().clone().requires_grad_() for t, at in ((x, at_x), (w, at_w), (b, at_b))]
                y = call(name, world, *leaves, m, in_out)
            return y, leaves, (at_x, at_w, at_b)

        ctx.parts = flux.run(worlds, part)
        ctx.name, ctx.worlds, ctx.shapes = name, worlds, [t.shape for t in (x, w, b)]
        ys = [y.detach() for y, _, _ in ctx.parts]
        ctx.rows = rows
        if name == "gemm_all_reduce":
            assert all(torch.equal(y, ys[0]) for y in ys)
            return ys[0].clone()
        return torch.cat(ys, 0 if name == "gemm_reduce_scatter" else 1)

    @staticmethod
    def backward(ctx, dy):
        ys = [y for y, _, _ in ctx.parts]
        if ctx.name == "gemm_all_reduce":
            mine = [dy] * len(ys)
        else:
            axis = 0 if ctx.name == "gemm_reduce_scatter" else 1
            mine = dy.split([y.size(axis) for y in ys], axis)
        found = flux.run(ctx.worlds, lambda world: torch.autograd.grad(
            ys[world.rank], ctx.parts[world.rank][1], mine[world.rank].contiguous(), retain_graph=True))
        whole = [torch.zeros(shape, dtype=dy.dtype, device=dy.device) for shape in ctx.shapes]
        for (_, _, places), gradients in zip(ctx.parts, found):
            for total, place, gradient in zip(whole, places, gradients):
                total[place] = gradient  # what several ranks hold is the same on each
        return None, None, None, *whole


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("in_out", [False, True])
@pytest.mark.parametrize("ranks,m", [(2, 4), (3, 5)])
def test_gradients(name, in_out, ranks, m):
    torch.manual_seed(0)
    n, k = (24, 24) if not place.CUDA else (48, 48)
    dtype, bound = (place.DTYPE, 4e-3) if place.CUDA else (torch.float64, 1e-12)
    worlds = place.threads_with_gradients(ranks)
    x, w, b = (torch.randn(shape, dtype=dtype, device=place.ON, requires_grad=True) for shape in [(m, k), (k, n), (n,)])
    weight = w if in_out else w.detach().t().contiguous().requires_grad_()
    ranks_of_it = types.SimpleNamespace()  # what autograd would keep: on a GPU its one thread may not wait for itself
    y = AllRanks.forward(ranks_of_it, name, worlds, in_out, x, weight, b)
    exact = [t.detach().double().requires_grad_() for t in (x, w, b)]
    wanted = exact[0] @ exact[1] + exact[2]
    assert place.error(y, wanted) < bound
    if not place.CUDA:
        assert torch.autograd.gradcheck(lambda *t: AllRanks.apply(name, worlds, in_out, *t), (x, weight, b), fast_mode=True)
    slope = torch.randn_like(y)
    found = AllRanks.backward(ranks_of_it, slope)[3:]
    want = torch.autograd.grad(wanted, exact, slope.double())
    for a, c in zip(found, (want[0], want[1] if in_out else want[1].t(), want[2])):
        assert place.error(a, c) < bound


def test_frozen_weights_need_no_rows():
    def body(world):
        x, w = torch.ones(2, 8, dtype=place.DTYPE, device=place.ON, requires_grad=True), torch.ones(8, 8).to(place.ON, place.DTYPE)
        y, rows = torch.ops.flux.all_gather_gemm(x, w, None, world.handle, 4, False, False)
        assert rows.numel() == 0
        y.sum().backward()
        return x.grad

    for gradient in flux.run(place.threads_with_gradients(2), body):
        assert gradient.shape == (2, 8) and gradient.eq(16).all()


def test_compiled_whole():
    """A forward and backward pass with no break in the graph."""
    (world,) = place.local(1)

    def mlp(x, up, down):
        hidden = torch.nn.functional.silu(torch_ops.all_gather_gemm(x, up, world=world, m=5))
        return torch_ops.gemm_reduce_scatter(hidden, down, world=world)

    torch.manual_seed(1)
    leaves = [torch.randn(shape, dtype=place.DTYPE, device=place.ON, requires_grad=True) for shape in [(5, 16), (32, 16), (16, 32)]]
    y = torch.compile(mlp, fullgraph=True, backend="aot_eager")(*leaves)
    x, up, down = leaves
    wanted = torch.nn.functional.silu(x @ up.t()) @ down.t()
    bound = 4e-3 if place.CUDA else 1e-6
    assert place.error(y, wanted) < bound
    for found, want in zip(torch.autograd.grad(y.sum(), leaves), torch.autograd.grad(wanted.sum(), leaves)):
        assert place.error(found, want) < bound


def test_the_names_that_a_profiler_sees():
    (world,) = place.local(1)
    x, w = (torch.ones(8, 8, dtype=place.DTYPE, device=place.ON, requires_grad=True) for _ in range(2))
    with torch.profiler.profile() as profile:
        torch_ops.gemm_all_reduce(torch_ops.all_gather_gemm(x, w, world=world), w, world=world).sum().backward()
    seen = {event.key for event in profile.key_averages()}
    assert {"flux::all_gather_gemm", "flux::gemm_all_reduce", "flux::gemm_reduce_scatter"} <= seen
    assert x.grad.eq(64).all()


def test_shapes_for_the_compiler():
    for world in flux.World.local(3):
        with torch._subclasses.FakeTensorMode():
            x, w = torch.empty(world.rows(10)[1], 16), torch.empty(8, 16)
            y, rows = torch.ops.flux.all_gather_gemm(x, w, None, world.handle, 10, False, True)
            assert y.shape == (10, 8) and rows.shape == (10, 16)
            z = torch.ops.flux.gemm_reduce_scatter(y, w, None, world.handle, True)
            assert z.shape == (world.rows(10)[1], 16)
            assert torch.ops.flux.gemm_all_reduce(y, w, None, world.handle, True).shape == (10, 16)


WRONG = {
    "dtype": (lambda x, w: (x.double(), w), "is fp32; this operator was made for fp64|made for"),
    "integers": (lambda x, w: (x.int(), w), "int32"),
    "width": (lambda x, w: (x[:, :4], w), r"needs"),
    "device": (lambda x, w: (x, w.to("meta")), "meta"),
}


@pytest.mark.parametrize("what", WRONG)
def test_bad_arguments(what):
    change, message = WRONG[what]

    def body(world):
        operator = flux.AllGatherGemm(world, 8, 8, torch.float32)
        x, w = torch.ones(4, 8), torch.ones(8, 8)
        with pytest.raises(flux.InvalidError, match=message):
            operator(*change(x, w), out=torch.empty(8, 8))
        return operator(x, w)

    for y in flux.run(flux.World.local(2, limit_seconds=10), body):
        assert torch.equal(y, torch.full((8, 8), 8.0))


def test_bfloat16_and_parameters():
    rest = {"dtype": torch.bfloat16, "device": place.ON}

    def body(world):
        weight = torch.nn.Parameter(torch.ones(8, 16, **rest))
        return flux.gemm_all_reduce(world, torch.ones(3, 16, **rest), weight)

    for y in flux.run(place.local(2), body):
        assert y.dtype is torch.bfloat16 and y.shape == (3, 8) and y.eq(32).all()
