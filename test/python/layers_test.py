"""Layers in processes under torchrun, which meet by gloo: a small Llama against the same one unsharded."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("mode", ["sequence", "whole", "off"])
def test_a_small_llama(mode, ranks):
    """Losses of 50 training steps in fp64 and fp32, state both ways, tokens from a KV cache; FLUX=off too."""
    if mode == "off" and ranks == 4:
        pytest.skip("two ranks tell as much")
    environment = {**os.environ, "FLUX": "off" if mode == "off" else "on", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", HERE / "llama.py",
         mode], env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-6000:]
