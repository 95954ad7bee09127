"""Timing of steps among ranks, and the rows of a result file."""

from __future__ import annotations

import datetime
import json
import os
import random
import shlex
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from .. import _flux


def captured(step: Callable[[], None]) -> Callable[[], None]:
    """The step as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step(), step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def times(steps: dict[str, Callable[[], None]], rounds: int, cuda: bool, group: Any) -> dict[str, np.ndarray]:
    """Microseconds of each round of each step, the slowest rank's; every round has all of them in a new order, the same on
    all ranks."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    order = random.Random(0)
    for number in range(rounds + 2):
        names = list(steps)
        order.shuffle(names)
        for name in names:
            if cuda:
                torch.cuda.synchronize()
            dist.barrier(group)
            start = time.perf_counter()
            steps[name]()
            if cuda:
                torch.cuda.synchronize()
            if number >= 2:  # the first warm up
                found[name].append((time.perf_counter() - start) * 1e6)
    result = {}
    for name, values in found.items():
        slowest = torch.tensor(values, dtype=torch.float64, device="cuda" if cuda else "cpu")
        dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)
        result[name] = slowest.cpu().numpy()
    return result


def row(values: np.ndarray, **facts: Any) -> dict[str, Any]:
    low, middle, high = (float(q) for q in np.percentile(values, [10, 50, 90]))
    return {"weight": "[out,in]", "epilogue": "none", "world": "processes", "nodes": 1, "duplex": True, "variant": "",
            "cache": "warm", "total_us": middle, "p10_us": low, "p90_us": high, "samples": len(values), **facts}


def write(folder: str, suite: str, rows: list[dict[str, Any]], cuda: bool) -> str:
    """A result file, of schema 1, checked as flux report reads it; its path."""
    machine = {"gpu": torch.cuda.get_device_name() if cuda else None, "gpus": torch.cuda.device_count() if cuda else 0,
               "cores": os.cpu_count(), "cuda": torch.version.cuda if cuda else None, "torch": torch.__version__}
    now = datetime.datetime.now(datetime.timezone.utc)
    content = {"schema": 1, "suite": suite, "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": _flux.facts()["commit"],
               "command": shlex.join(["python", "-m", "flux.bench", *sys.argv[1:]]), "machine": machine, "rows": rows}
    os.makedirs(folder, exist_ok=True)
    return _flux.write_result(folder, json.dumps(content))
