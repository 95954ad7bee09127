"""The operators on NumPy arrays, on ranks that are threads, against float64."""

import numpy as np
import pytest

import flux

RANKS = [1, 2, 3, 4]


@pytest.fixture(params=RANKS)
def worlds(request):
    return flux.World.local(request.param, limit_seconds=20, plan_cache="none")


def parts(total, ranks, unit=1):
    edges = [r * (total // unit) // ranks * unit for r in range(ranks)] + [total]
    return [slice(a, b) for a, b in zip(edges, edges[1:])]


def error(found, wanted):
    return np.linalg.norm(found.astype(np.float64) - wanted) / np.linalg.norm(wanted)


BOUND = {np.float64: 1e-13, np.float32: 1e-5, np.float16: 2e-3}
SIZES = [(64, 48, 32), (37, 40, 24), (3, 16, 8), (1, 8, 16)]


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("m,n,k", SIZES)
@pytest.mark.parametrize("in_out", [False, True])
def test_all_gather_gemm(worlds, m, n, k, dtype, in_out):
    random = np.random.default_rng(1)
    x, w, b = (random.uniform(-1, 1, shape).astype(dtype) for shape in [(m, k), (n, k), (n,)])
    rows, columns = parts(m, len(worlds)), parts(n, len(worlds), 8)

    def body(world):
        r, c = rows[world.rank], columns[world.rank]
        weight = np.ascontiguousarray(w[c].T) if in_out else w[c]
        gathered = np.full((m, k), np.nan, dtype)
        y = flux.all_gather_gemm(world, x[r], weight, b[c], m=m, in_out=in_out, gathered=gathered)
        np.testing.assert_array_equal(gathered, x)
        return y

    y = np.concatenate(flux.run(worlds, body), axis=1)
    assert error(y, x.astype(float) @ w.astype(float).T + b) < BOUND[dtype]


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("m,n,k", SIZES)
@pytest.mark.parametrize("in_out", [False, True])
@pytest.mark.parametrize("operator", [flux.gemm_reduce_scatter, flux.gemm_all_reduce])
def test_gemm_and_sum(worlds, m, n, k, dtype, in_out, operator):
    random = np.random.default_rng(2)
    x, w, b = (random.uniform(-1, 1, shape).astype(dtype) for shape in [(m, k), (n, k), (n,)])
    columns = parts(k, len(worlds), 8)

    def body(world):
        c = columns[world.rank]
        weight = np.ascontiguousarray(w[:, c].T) if in_out else w[:, c]
        return operator(world, x[:, c], weight, b, in_out=in_out)

    found = flux.run(worlds, body)
    wanted = x.astype(float) @ w.astype(float).T + b
    if operator is flux.gemm_reduce_scatter:
        assert [y.shape[0] for y in found] == [r.stop - r.start for r in parts(m, len(worlds))]
        assert error(np.concatenate(found), wanted) < BOUND[dtype]
    else:
        assert all(error(y, wanted) < BOUND[dtype] for y in found)


def test_a_gated_layer_and_a_norm():
    def silu(x):
        return x / (1 + np.exp(-x))

    random = np.random.default_rng(3)
    x, gate, up = (random.uniform(-1, 1, shape) for shape in [(10, 32), (16, 32), (16, 32)])
    residual, gamma = random.uniform(-1, 1, (10, 32)), random.uniform(-1, 1, 32)
    wanted = silu(x @ gate.T) * (x @ up.T)

    def body(world):
        r, c = parts(10, 2)[world.rank], parts(16, 2, 8)[world.rank]
        both = np.concatenate([gate[c], up[c]])
        once = flux.all_gather_gemm(world, x[r], both, m=10, activation="silu", gated=True)
        apart = flux.all_gather_gemm(world, x[r], gate[c], m=10, activation="silu", gated=True, up=up[c])
        np.testing.assert_array_equal(once, apart)
        normed = np.empty_like(residual[r])
        y = flux.gemm_reduce_scatter(world, once, gate[c], in_out=True, residual=residual[r], norm_weight=gamma,
                                     normed=normed, norm_epsilon=1e-6)
        return once, y, normed

    hidden, y, normed = zip(*flux.run(flux.World.local(2), body))
    assert error(np.concatenate(hidden, axis=1), wanted) < 1e-13
    y, want = np.concatenate(y), wanted @ gate + residual
    assert error(y, want) < 1e-13
    want = want / np.sqrt((want**2).mean(axis=1, keepdims=True) + 1e-6) * gamma
    assert error(np.concatenate(normed), want) < 1e-13


def test_rows_may_lie_apart_and_results_go_where_asked():
    worlds = flux.World.local(2)
    x, w, y = np.arange(64.).reshape(4, 16), np.ones((16, 8)), np.full((4, 20), -1.)

    def body(world):
        flux.all_gather_gemm(world, x[2 * world.rank:][:2, :8], w[8 * world.rank:][:8], out=y[:, 10 * world.rank:][:, :8])

    flux.run(worlds, body)
    wanted = np.full((4, 20), -1.)
    wanted[:, :8] = wanted[:, 10:18] = x[:, :8].sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(y, wanted)


X, W = np.ones((4, 8), np.float32), np.ones((8, 8), np.float32)
WRONG = {
    "dtype of x": (dict(x=X.astype(np.float64)), "x is fp64; this operator was made for fp32"),
    "integers": (dict(weight=W.astype(np.int32)), "the weight is int32; allowed are float64"),
    "width": (dict(x=X[:, :4]), r"x is \[4, 4\]; this call needs \[4, 8\]"),
    "rows": (dict(m=6), r"x is \[4, 8\]; this call needs \[3, 8\]"),
    "too many rows": (dict(x=np.ones((8, 8), np.float32)), "m is 16; this operator was made for 0 to 8 rows"),
    "elements apart": (dict(weight=np.ones((8, 16), np.float32)[:, ::2]), "the weight has elements of a row 2 apart"),
    "dimensions": (dict(bias=np.ones((1, 1, 8), np.float32)), "the bias has 3 dimensions"),
    "read-only output": (dict(out=np.frombuffer(bytes(8 * 8 * 4), np.float32).reshape(8, 8)), "the output is read-only"),
    "output's shape": (dict(out=np.ones((8, 7), np.float32)), r"the output is \[8, 7\]; this call needs \[8, 8\]"),
    "no array": (dict(bias="a word"), "the bias is"),
    "activation": (dict(activation="tan"), "tan"),
}


@pytest.mark.parametrize("what", WRONG)
def test_bad_arguments(what):
    given, message = WRONG[what]
    worlds = flux.World.local(2, limit_seconds=5)

    def body(world):
        operator = flux.AllGatherGemm(world, 8, 8, "float32")
        with pytest.raises(flux.InvalidError, match=message):
            operator(**{"x": X, "weight": W, **given})
        return operator(X, W)  # and it still works

    for y in flux.run(worlds, body):
        np.testing.assert_array_equal(y, np.full((8, 8), 8, np.float32))


def test_bad_worlds_and_shapes():
    with pytest.raises(flux.InvalidError, match="1 to 16 ranks, not 17"):
        flux.World.local(17)
    with pytest.raises(flux.InvalidError, match="allowed are host, devices and shared_gpu"):
        flux.World.local(2, on="moon")
    (world,) = flux.World.local(1)
    with pytest.raises(flux.InvalidError, match="dtype is int8"):
        flux.AllGatherGemm(world, 8, 8, "int8")
    with pytest.raises(flux.InvalidError, match="0 to"):
        flux.GemmReduceScatter(world, -1, 8)
    with pytest.raises(flux.InvalidError, match="plan"):
        flux.GemmReduceScatter(world, 8, 8, plan="fused=perhaps")
    with pytest.raises(ValueError):  # kinds are also the classes one expects
        flux.World.of(0)


def test_a_rank_that_fails_ends_the_others():
    def body(world):
        if world.rank == 1:
            raise KeyError("mine")
        with pytest.raises(flux.TimeoutError):
            flux.all_gather_gemm(world, X, W)

    with pytest.raises(KeyError, match="mine"):
        flux.run(flux.World.local(3, limit_seconds=20), body)


def test_ranks_that_make_other_calls():
    def body(world):
        operator = flux.GemmAllReduce(world, 8, 8)
        operator(X[:2 + world.rank], W)

    with pytest.raises(flux.TimeoutError, match="make different calls"):
        flux.run(flux.World.local(2, limit_seconds=5), body)


def test_memory_is_told_and_operators_are_kept():
    def body(world):
        need = flux.AllGatherGemm.memory(world, 64, 8, "fp32")
        flux.all_gather_gemm(world, X, W)
        kept = dict(world.operators)
        flux.all_gather_gemm(world, X, W)
        same = all(kept[key] is world.operators[key] for key in kept)
        flux.all_gather_gemm(world, np.ones((100, 8), np.float32), W)
        return need, same, [rows for rows, _ in world.operators.values()], flux.report(world)

    for need, same, rows, text in flux.run(flux.World.local(2), body):
        assert need["total"] >= need["buffers"] * need["buffer"] >= 2 * 64 * 8 * 4
        assert same and rows == [256]
        assert "AllGatherGemm 8 fp32, up to 256 rows: fused=yes" in text and "of 2, threads on the host" in text


def test_plan():
    told = flux.plan("gemm_rs", 8192, 8192, 28672, machine="h800")
    assert told["fused"] and 0 < told["gemm_us"] <= told["floor_us"] <= told["total_us"] < told["none_us"]
    assert 0 < told["efficiency"] < 1
    assert told["candidates"][0]["plan"] == told["plan"] and any("out" in c for c in told["candidates"])
    with pytest.raises(flux.InvalidError):
        flux.plan("gemm_xx", 1, 8, 8)
