"""The three operators on arrays of NumPy, CuPy, JAX (by DLPack) and torch (by address, shape and strides).

Sizes m, n, k are global, over all W ranks: rank r holds rows floor(r m / W) to floor((r + 1) m / W), and its part of n or
k. Weights are [out, in] as in torch.nn.Linear, or [in, out] with in_out=True. Allowed are float64 and float32 (host
engine), float16 and bfloat16. Matrices may have rows apart (a stride); elements of a row lie side by side.

Every operator raises InvalidError before anything starts where a shape, dtype, device or layout is wrong, and
TimeoutError on every rank where one does not come or makes another call. On GPUs a call is enqueued on `stream` (an
address; None: torch's or CuPy's current stream) and returns at once.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from . import _flux
from .errors import InvalidError
from .world import World

_DTYPES = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


@functools.cache
def dtype_name(dtype: Any) -> str:
    """`fp32` for float32 of NumPy or torch, for its name and for `fp32`. Raises InvalidError."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")
    name = _DTYPES.get(name, name)
    if name not in _DTYPES.values():
        raise InvalidError(f"dtype is {dtype}; allowed are {', '.join(_DTYPES)}")
    return name


def _torch_of(array: Any) -> Any:
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def _empty(rows: int, columns: int, like: Any) -> Any:
    """An array for a result, of the library that `like` is from. JAX's cannot be written to: it gets NumPy's."""
    if _torch_of(like):
        return like.new_empty((rows, columns))
    if type(like).__module__.split(".")[0] == "cupy":
        import cupy

        return cupy.empty((rows, columns), like.dtype)
    import numpy

    return numpy.empty((rows, columns), like.dtype)


def _stream(world: World, stream: int | None, array: Any) -> int:
    if stream is not None or world.device < 0:
        return stream or 0
    if torch := _torch_of(array):
        return torch._C._cuda_getCurrentRawStream(world.device)  # of current_stream() the number alone
    if (cupy := sys.modules.get("cupy")) is not None:
        return cupy.cuda.get_current_stream().ptr
    return 0


def _matrix(what: str, array: Any) -> tuple[int, int]:
    shape = array.shape
    if len(shape) != 2:
        raise InvalidError(f"{what} has the shape {list(shape)}; a matrix [rows, columns] is needed")
    return shape[0], shape[1]


def _require_on(world: World) -> None:
    if world.off:
        raise InvalidError("this world is switched off by FLUX=off, where only flux.nn and torch's operators work")


class AllGatherGemm:
    """y = act(all_gather(x) wᵀ + bias), the gather hidden behind the GEMM.

    Construction is collective and allocates what ranks share, for up to `max_m` rows of `k` elements; a call is
    collective and allocates none. `n` (columns over all ranks), in_out and gated only help to look a tuned plan up.
    plan: a line as `flux plan` prints it; "": the tuned plan, or rules that are right on any machine.
    """

    def __init__(self, world: World, max_m: int, k: int, dtype: Any = "fp32", *, n: int = 0, in_out: bool = False,
                 gated: bool = False, plan: str = ""):
        _require_on(world)
        self.world = world
        self.ours = _flux.AllGatherGemm(world.ours, max_m, k, dtype_name(dtype), n, in_out, gated, plan)

    @staticmethod
    def memory(world: World, max_m: int, k: int, dtype: Any = "fp32", *, n: int = 0, in_out: bool = False,
               gated: bool = False, plan: str = "") -> dict[str, int]:
        """Bytes that construction takes on each rank: buffers of `buffer` each, scratch, own, packets, total."""
        return _flux.AllGatherGemm.memory(world.ours, max_m, k, dtype_name(dtype), n, in_out, gated, plan)

    @property
    def plan(self) -> str:
        """The plan it goes by, in one line."""
        return self.ours.plan

    def __call__(self, x: Any, weight: Any, bias: Any = None, *, m: int | None = None, out: Any = None,
                 gathered: Any = None, activation: str = "none", gated: bool = False, up: Any = None,
                 up_bias: Any = None, in_out: bool = False, stream: int | None = None) -> Any:
        """x [m_r, k], weight [n_r, k] (in_out: [k, n_r]), bias [n_r] -> out [m, n_r].

        m: rows over all ranks; None: the ranks' parts are equal. gathered [m, k] receives all rows of x; with weight
        None that is all that is done. activation: none, relu, gelu, gelu_tanh, quick_gelu or silu. gated: act(gate)
        times up, both in `weight`, gate first (out [m, n_r / 2]), or up and up_bias given apart.
        """
        if m is None:
            m = x.shape[0] * self.world.size
        if out is None and weight is not None:
            rows, columns = _matrix("the weight", weight)
            n = columns if in_out else rows
            out = _empty(m, n // 2 if gated and up is None else n, x)
        self.ours.run(m, x, weight, out, bias, gathered, up, up_bias, activation, gated, in_out,
                      _stream(self.world, stream, x))
        return out


class _Sum:
    """What GemmReduceScatter and GemmAllReduce have in common."""

    ours_class: Any

    def __init__(self, world: World, max_m: int, n: int, dtype: Any = "fp32", *, k: int = 0, in_out: bool = False,
                 plan: str = ""):
        _require_on(world)
        self.world = world
        self.ours = self.ours_class(world.ours, max_m, n, dtype_name(dtype), k, in_out, plan)

    @classmethod
    def memory(cls, world: World, max_m: int, n: int, dtype: Any = "fp32", *, k: int = 0, in_out: bool = False,
               plan: str = "") -> dict[str, int]:
        """Bytes that construction takes on each rank: buffers of `buffer` each, scratch, own, packets, total."""
        return cls.ours_class.memory(world.ours, max_m, n, dtype_name(dtype), k, in_out, plan)

    @property
    def plan(self) -> str:
        """The plan it goes by, in one line."""
        return self.ours.plan

    def _rows_out(self, m: int) -> int:
        raise NotImplementedError

    def __call__(self, x: Any, weight: Any, bias: Any = None, *, out: Any = None, residual: Any = None,
                 norm_weight: Any = None, normed: Any = None, norm_epsilon: float = 1e-5, in_out: bool = False,
                 stream: int | None = None) -> Any:
        """x [m, k_r], weight [n, k_r] (in_out: [k_r, n]), bias [n], residual as out -> out.

        What is done to the sum, once: out = sum + bias + residual; with norm_weight [n], normed (as out) receives
        RMSNorm(out) times norm_weight.
        """
        m = _matrix("x", x)[0]
        if out is None:
            rows, columns = _matrix("the weight", weight)
            out = _empty(self._rows_out(m), columns if in_out else rows, x)
        self.ours.run(m, x, weight, out, bias, residual, norm_weight, normed, norm_epsilon, in_out,
                      _stream(self.world, stream, x))
        return out


class GemmReduceScatter(_Sum):
    """y = reduce_scatter(x wᵀ) + bias + residual, each finished tile sent to its owner at once. out: [m_r, n].

    Construction is collective, for up to `max_m` rows and `n` columns over all ranks; `k` and in_out only help to choose
    a plan. The same bits from run to run unless the plan's route is `sum`.
    """

    ours_class = _flux.GemmReduceScatter

    def _rows_out(self, m: int) -> int:
        return self.world.rows(m)[1]


class GemmAllReduce(_Sum):
    """y = all_reduce(x wᵀ) + bias + residual, for decoding. out: [m, n] on every rank. Made as GemmReduceScatter."""

    ours_class = _flux.GemmAllReduce

    def _rows_out(self, m: int) -> int:
        return m


def cached(world: World, operator: type, m: int, width: int, dtype: Any) -> Any:
    """The world's operator of that kind for rows of `width`, made anew where it serves fewer than m rows. Collective."""
    key = (operator.__name__, width, dtype_name(dtype))
    most, found = world.operators.get(key, (-1, None))
    if m > most:
        most = max(64, 1 << (m - 1).bit_length())  # so that it is seldom made anew
        world.operators.pop(key, None)
        found = operator(world, most, width, dtype)
        world.operators[key] = (most, found)
    return found


def all_gather_gemm(world: World, x: Any, weight: Any, bias: Any = None, *, m: int | None = None, **rest: Any) -> Any:
    """AllGatherGemm by an operator that the world keeps for this width and dtype."""
    rows, k = _matrix("x", x)
    m = rows * world.size if m is None else m
    return cached(world, AllGatherGemm, m, k, x.dtype)(x, weight, bias, m=m, **rest)


def gemm_reduce_scatter(world: World, x: Any, weight: Any, bias: Any = None, *, in_out: bool = False, **rest: Any) -> Any:
    """GemmReduceScatter by an operator that the world keeps for this width and dtype."""
    n = _matrix("the weight", weight)[1 if in_out else 0]
    return cached(world, GemmReduceScatter, _matrix("x", x)[0], n, x.dtype)(x, weight, bias, in_out=in_out, **rest)


def gemm_all_reduce(world: World, x: Any, weight: Any, bias: Any = None, *, in_out: bool = False, **rest: Any) -> Any:
    """GemmAllReduce by an operator that the world keeps for this width and dtype."""
    n = _matrix("the weight", weight)[1 if in_out else 0]
    return cached(world, GemmAllReduce, _matrix("x", x)[0], n, x.dtype)(x, weight, bias, in_out=in_out, **rest)


def plan(op: str, m: int, n: int, k: int, ranks: int = 8, *, machine: str = "h200", dtype: Any = "bf16",
         in_out: bool = False, gated: bool = False) -> dict[str, Any]:
    """What would be chosen for a problem on a machine, simulated, as `flux plan` shows it.

    op: ag_gemm, gemm_rs or gemm_ar. machine: a name that `flux plan` knows, or a file that `flux doctor --measure` wrote.
    Returns plan (a line that an operator takes), fused, total_us, gemm_us, comm_us, none_us, floor_us, efficiency and
    candidates: each with its plan, its total_us where it was simulated, and `out`, the reason, where it is out.
    """
    return _flux.plan(op, m, n, k, ranks, machine, dtype_name(dtype), in_out, gated)
