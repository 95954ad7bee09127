"""Where the tests of torch run: on the host engine, or on GPUs where torch and FLUX see some; FLUX_TEST_ON=cpu or cuda in the
environment insists. On GPUs tensors are of 16 bits (DTYPE), so bounds are wider.

Ranks that torchrun starts get a GPU each and NCCL. Where there are fewer GPUs they are two, share GPU 0 by turns and
meet by gloo; a wait for the other is then a time slice, so tests that make many steps make few.
"""

import os

import pytest
import torch
import torch.distributed as dist

import flux

ON = os.environ.get("FLUX_TEST_ON") or ("cuda" if torch.cuda.is_available() and flux._flux.facts()["gpus"] else "cpu")
assert ON in ("cpu", "cuda"), f"FLUX_TEST_ON={ON} in the environment; allowed are cpu and cuda"
CUDA = ON == "cuda"
DTYPE = torch.float16 if CUDA else torch.float32
GPUS = torch.cuda.device_count() if CUDA else 0
SHARED = CUDA and GPUS < int(os.environ.get("WORLD_SIZE", "1"))


def ranks(wanted):
    """As many ranks as a test that wants so many is started with."""
    return 2 if CUDA and GPUS < wanted else wanted


def start():
    """In what torchrun started: tensors are made on this rank's device from here on."""
    torch.set_num_threads(1)
    if CUDA:
        torch.cuda.set_device(0 if SHARED else int(os.environ["LOCAL_RANK"]))
        torch.set_default_device("cuda")
    dist.init_process_group("gloo" if SHARED or not CUDA else "nccl")


def world_of(size):
    """This rank's world of so many neighbours, or of all where there are fewer. Collective over all."""
    size = min(size, dist.get_world_size())
    groups = [dist.new_group(range(first, first + size)) for first in range(0, dist.get_world_size(), size)]
    return flux.World.from_torch(groups[dist.get_rank() // size], device=ON, limit_seconds=60)


def local(size):
    """Worlds of ranks that are threads."""
    return flux.World.local(size, "devices" if GPUS >= size else "shared_gpu" if CUDA else "host", limit_seconds=60)


def threads_with_gradients(size):
    """The same, for backward passes: autograd has one thread a GPU, which cannot be in those of several ranks at once."""
    if CUDA and GPUS < size:
        pytest.skip(f"{size} ranks need a GPU each: autograd has one thread a GPU; groups.py has the same in processes")
    return local(size)


def error(found, wanted):
    """||found - wanted|| / ||wanted||"""
    found, wanted = found.detach().double(), wanted.detach().double()
    return float((found - wanted).norm() / wanted.norm())
