"""Ranks that torchrun started, which meet in the store of its agent: no process group of torch.distributed is needed."""

from __future__ import annotations

import datetime
import itertools
import os
from collections.abc import Callable

_numbers = itertools.count(1)  # of the worlds that every rank makes, in the same order


def started() -> bool:
    """Whether the environment is torchrun's, and not that of `flux launch`."""
    return "FLUX_RANK" not in os.environ and all(
        name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def meeting(limit_seconds: float) -> tuple[int, int, Callable[[bytes], list[bytes]]]:
    """This rank, how many there are, and a function that gathers every rank's bytes, in rank order."""
    from torch.distributed import PrefixStore, rendezvous

    limit = datetime.timedelta(seconds=limit_seconds)
    found, rank, size = next(iter(rendezvous("env://", timeout=limit)))
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = PrefixStore(f"flux/{restart}/{next(_numbers)}", found)
    store.set_timeout(limit)
    rounds = itertools.count()

    def gather(mine: bytes) -> list[bytes]:
        number = next(rounds)
        store.set(f"{number}/{rank}", mine)
        return [store.get(f"{number}/{other}") for other in range(size)]

    return rank, size, gather
