"""The exceptions of FLUX: one class for each kind of error, so that a caller can decide without reading the text."""


class Error(RuntimeError):
    """Any error of FLUX. The message says what was given, what is allowed and what to do."""


class InvalidError(Error, ValueError):
    """The caller's arguments are wrong; nothing was launched."""


class UnsupportedError(Error):
    """A correct request that this build, machine or shape cannot serve."""


class DeviceError(Error):
    """CUDA, NCCL, MPI or the operating system reported a failure."""


class TimeoutError(Error, TimeoutError):  # noqa: A001
    """A peer did not arrive within the bound, died, or made a different call."""


class InternalError(Error):
    """A bug in FLUX."""
