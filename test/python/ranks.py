"""Worlds of a part of the ranks that torchrun started, so that one start tests several sizes."""

import torch.distributed as dist

import flux


def world_of(size):
    """This rank's world of so many neighbours. Collective over all."""
    groups = [dist.new_group(range(first, first + size)) for first in range(0, dist.get_world_size(), size)]
    return flux.World.from_torch(groups[dist.get_rank() // size], limit_seconds=60)
