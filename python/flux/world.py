"""Worlds: the ranks that work together, seen from one of them."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import _flux, torchrun
from .errors import Error, InvalidError, TimeoutError

_by_handle: weakref.WeakValueDictionary[int, World] = weakref.WeakValueDictionary()
_handles = itertools.count(1)
_by_group: dict[Any, World] = {}
atexit.register(_by_group.clear)


def switched_off() -> bool:
    """Whether the environment's FLUX=off asks for torch's own collectives, one after the other with its GEMM."""
    word = os.environ.get("FLUX", "on")
    if word not in ("on", "off"):
        raise InvalidError(f"FLUX={word} in the environment; allowed are on and off")
    return word == "off"


class World:
    """The ranks that work together, seen from one of them. Every rank makes the same calls in the same order.

    Made by `World.local`, `World.from_torch`, `World.from_mpi` or `World.from_launcher`, which take these options:
      warn_seconds, limit_seconds: a wait this long is said once on stderr, ends the call on every rank (30, 600).
      plan_cache: the file of tuned plans; "": $FLUX_PLAN_CACHE or the user's cache; "none": no file.
      tune_seconds: operators whose problem is in no table are tuned about so long before they are made (0: not).
      link_gbps, link_latency_us: the declared link of worlds on the host (0: none).

    Attributes: rank, size; kind: "threads", "processes", "devices" or "shared gpu"; device: the index of this rank's
    GPU, -1: operators take tensors in host memory; handle: an integer that stands for this world in custom operators of
    torch; group: the torch.distributed group it was made from, or None; off: FLUX=off, so no call goes through FLUX.
    """

    def __init__(self, world: Any, group: Any = None, *, rank: int = 0, size: int = 1):
        """`world` is what the module makes; None: a world that FLUX=off switched off, of this rank and size."""
        self.ours = world
        self.group = group
        self.off = world is None
        self.rank: int = rank if self.off else world.rank
        self.size: int = size if self.off else world.size
        self.kind: str = "off" if self.off else world.kind
        self.device: int = -1 if self.off else world.device
        self.operators: dict[tuple, tuple[int, Any]] = {}  # by what they are made for: the most rows, the operator
        self.handle = next(_handles)
        _by_handle[self.handle] = self

    @staticmethod
    def local(ranks: int, on: str = "host", **options: Any) -> list[World]:
        """`ranks` ranks of this process, one world each, for `flux.run`.

        on: "host": the host engine; "devices": rank r on GPU r; "shared_gpu": all on GPU 0, for tests.
        Raises InvalidError for a number beside 1 to 16, UnsupportedError where GPUs or their kernels are missing.
        """
        return [World(world) for world in _flux.local(ranks, on, _flux.WorldOptions(**options))]

    @staticmethod
    def from_torch(group: Any = None, device: Any = None, **options: Any) -> World:
        """The ranks of a torch.distributed group of this host; None: of all. Collective over that group.

        device: "cpu", "cuda" (torch's current one) or its index; None: "cuda" where the group's backend is nccl.
        Raises InvalidError where this rank is not in the group, or torch.distributed is not initialised.
        """
        import torch
        import torch.distributed as dist

        if not dist.is_available() or not dist.is_initialized():
            raise InvalidError("torch.distributed is not initialised; call init_process_group() first")
        group = dist.group.WORLD if group is None else group
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        if rank < 0:
            raise InvalidError(f"rank {dist.get_rank()} is not in the group given; make its world on its ranks alone")
        if switched_off():
            return World(None, group, rank=rank, size=size)

        def gather(mine: bytes) -> list[bytes]:
            everybody: list[Any] = [None] * size
            dist.all_gather_object(everybody, mine, group=group)
            return everybody

        if device is None:
            device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"
        if not isinstance(device, int):
            named = torch.device(device)
            if named.type not in ("cpu", "cuda"):
                raise InvalidError(f"device is {device}; allowed are cpu, cuda and the index of a GPU")
            device = -1
            if named.type == "cuda":
                device = torch.cuda.current_device() if named.index is None else named.index
        made = _flux.from_gather(rank, size, gather, _flux.WorldOptions(device=device, **options))
        return World(made, group)

    @staticmethod
    def from_mpi(device: int = -1, **options: Any) -> World:
        """The ranks that mpirun started. device: the index of this rank's GPU; -1: the host engine.

        Raises UnsupportedError in a build without MPI.
        """
        return World(_flux.from_environment(True, _flux.WorldOptions(device=device, **options)))

    @staticmethod
    def from_launcher(device: int = -1, **options: Any) -> World:
        """The ranks that `flux launch` or torchrun started. device as for `from_mpi`.

        Under torchrun they meet in its store (torch is imported for that alone); `from_torch` is for those of a group.
        Raises InvalidError where neither started this process.
        """
        settings = _flux.WorldOptions(device=device, **options)
        if torchrun.started():
            return World(_flux.from_gather(*torchrun.meeting(options.get("limit_seconds", 600.0)), settings))
        return World(_flux.from_environment(False, settings))

    @staticmethod
    def of(handle: int) -> World:
        """The world of that handle. Raises InvalidError where it is gone."""
        world = _by_handle.get(handle)
        if world is None:
            raise InvalidError(f"no world has the handle {handle}: keep the World as long as it is used")
        return world

    @staticmethod
    def of_group(group: Any, device: Any = None) -> World:
        """The world of that group of torch.distributed, made by from_torch when first asked for, collectively, and kept
        to the end of the process."""
        world = _by_group.get(group)
        if world is None:
            world = _by_group[group] = World.from_torch(group, device)
        return world

    def rows(self, m: int) -> tuple[int, int]:
        """(first, count) of this rank's part of m rows: floor(rank m / size) and so on."""
        return _flux.part_of_rows(m, self.rank, self.size)

    def columns(self, total: int) -> tuple[int, int]:
        """(first, count) of this rank's part of n or k, divided in units of 8 elements."""
        return _flux.part_of_columns(total, self.rank, self.size)

    def barrier(self) -> None:
        """Waits for every rank."""
        if self.off:
            import torch.distributed as dist

            dist.barrier(self.group)
        else:
            self.ours.barrier()

    def check(self) -> None:
        """Raises the error that ended the world, if one did. An ended world stays ended; a new one works."""
        if not self.off:
            self.ours.check()

    def fail(self) -> None:
        """This rank cannot go on: ends the world for every rank that waits for it."""
        if not self.off:
            self.ours.fail()

    def __repr__(self) -> str:
        place = "the host" if self.device < 0 else f"cuda:{self.device}"
        return f"<flux.World rank {self.rank} of {self.size}, {self.kind} on {place}>"


def _libraries() -> tuple[Any, Any]:
    """torch, if it is imported and has GPUs, and CuPy, if it is imported."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() else None, sys.modules.get("cupy")


def _settle(device: int) -> None:
    """Waits for what this GPU was given by now."""
    torch, cupy = _libraries()
    if torch is not None:
        torch.cuda.synchronize(device)
    elif cupy is not None:
        with cupy.cuda.Device(device):
            cupy.cuda.runtime.deviceSynchronize()


@contextlib.contextmanager
def _stream_of_its_own(world: World) -> Iterator[None]:
    """On a GPU this thread's current stream in torch and CuPy, whichever is imported: in one stream a rank's kernel would
    wait behind another's that waits for it. Its work is done at the end."""
    torch, cupy = _libraries() if world.device >= 0 else (None, None)
    with contextlib.ExitStack() as stack:
        stream: Any = None
        if torch is not None:
            stream = torch.cuda.Stream(world.device)
            stack.enter_context(torch.cuda.stream(stream))
        if cupy is not None:
            of_cupy = cupy.cuda.ExternalStream(stream.cuda_stream) if stream else cupy.cuda.Stream(non_blocking=True)
            stream = stream or of_cupy
            stack.enter_context(of_cupy)
        yield
        if stream is not None:
            stream.synchronize()


def run(worlds: Sequence[World], body: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Calls body(world, *arguments) for each of `World.local`'s worlds, each in a thread of its own, and on GPUs with a
    current stream of its own, which starts when the GPU has done what it was given before and is done at the end.

    Returns what they return, in rank order. Where ranks raise, the others are ended, and the first one's error that is
    not a mere consequence is raised.
    """

    def one(world: World) -> Any:
        world.ours.activate()
        try:
            with _stream_of_its_own(world):
                return body(world, *arguments)
        except BaseException:
            world.fail()
            raise

    for device in {world.device for world in worlds if world.device >= 0}:
        _settle(device)
    with ThreadPoolExecutor(len(worlds)) as pool:
        futures = [pool.submit(one, world) for world in worlds]
    errors = [error for future in futures if (error := future.exception())]
    if errors:
        raise next((error for error in errors if not isinstance(error, TimeoutError)), errors[0])
    return [future.result() for future in futures]


def report(world: World | None = None) -> str:
    """What is active on this machine, and why the rest is not; with `world`, of that world too."""
    facts = _flux.facts()
    lines = [f"flux {facts['version']} ({facts['commit']})",
             f"  engine: {facts['gpus']} GPUs" if facts["gpus"] else f"  engine: the host's; {facts['no_gpus']}",
             f"  MPI: {'in this build' if facts['mpi'] else 'not in this build'}",
             f"  switched: {'off by FLUX=off' if switched_off() else 'on'}"]
    torch = sys.modules.get("torch")
    lines.append(f"  torch: {torch.__version__}" if torch else "  torch: not imported")
    if world is not None:
        lines.append(f"  world: {world!r}")
        for start, end, way, works, why in () if world.off else world.ours.links:
            lines.append(f"  link {start} -> {end}: {way}, {'works' if works else 'does not work: ' + why}")
        for key, (rows, operator) in world.operators.items():
            lines.append(f"  {' '.join(map(str, key))}, up to {rows} rows: {operator.plan}")
    return "\n".join(lines)


__all__ = ["Error", "World", "report", "run", "switched_off"]
