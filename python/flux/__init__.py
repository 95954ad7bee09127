"""FLUX: tensor-parallel communication hidden inside the GEMM.

Without torch: World, run, AllGatherGemm, GemmReduceScatter, GemmAllReduce, their functional forms, plan and report. With
torch: flux.torch_ops (custom operators with autograd), flux.nn (layers), parallelize (a model of transformers),
full_state_dict, flux.megatron, flux.vllm, and `python -m flux.bench`. See docs/integrating.md.
"""

from typing import Any as _Any

from ._flux import facts as _facts
from .errors import DeviceError, Error, InternalError, InvalidError, TimeoutError, UnsupportedError
from .operators import (AllGatherGemm, GemmAllReduce, GemmReduceScatter, all_gather_gemm, gemm_all_reduce,
                        gemm_reduce_scatter, plan)
from .world import World, report, run

__version__ = _facts()["version"]
__all__ = ["AllGatherGemm", "DeviceError", "Error", "GemmAllReduce", "GemmReduceScatter", "InternalError", "InvalidError",
           "TimeoutError", "UnsupportedError", "World", "all_gather_gemm", "gemm_all_reduce", "gemm_reduce_scatter",
           "full_state_dict", "parallelize", "plan", "report", "run"]


def __getattr__(name: str) -> _Any:
    """What needs torch, which is imported with it."""
    if name == "parallelize":
        from .huggingface import parallelize

        return parallelize
    if name == "full_state_dict":
        from .sharding import full_state_dict

        return full_state_dict
    raise AttributeError(f"module flux has no {name}")
