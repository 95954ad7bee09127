"""FLUX: tensor-parallel communication hidden inside the GEMM.

Without torch: World, run, AllGatherGemm, GemmReduceScatter, GemmAllReduce, their functional forms, plan and report. With
torch: flux.torch_ops (custom operators with autograd), flux.nn (layers).
"""

from ._flux import facts as _facts
from .errors import DeviceError, Error, InternalError, InvalidError, TimeoutError, UnsupportedError
from .operators import (AllGatherGemm, GemmAllReduce, GemmReduceScatter, all_gather_gemm, gemm_all_reduce,
                        gemm_reduce_scatter, plan)
from .world import World, report, run

__version__ = _facts()["version"]
__all__ = ["AllGatherGemm", "DeviceError", "Error", "GemmAllReduce", "GemmReduceScatter", "InternalError", "InvalidError",
           "TimeoutError", "UnsupportedError", "World", "all_gather_gemm", "gemm_all_reduce", "gemm_reduce_scatter",
           "plan", "report", "run"]
