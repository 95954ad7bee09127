"""Programs that are ranks: started, waited for, and heard when they fail."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def run(command, seconds=280, **environment):
    """Ranks share few cores, so each keeps to one thread."""
    full = {**os.environ, "OMP_NUM_THREADS": "1", "FLUX_PLAN_CACHE": "none", **environment}
    done = subprocess.run([str(word) for word in command], env=full, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


def torchrun(wanted, script, *arguments):
    """On so many ranks, or on two that share a GPU (place.py)."""
    import place

    ranks = place.ranks(wanted)
    return run([sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone",
                f"--nproc-per-node={ranks}", HERE / script, *arguments])
