"""Layers, models and groups in processes under torchrun, which meet by gloo: sharded against unsharded."""

import importlib.util

import pytest
from launch import torchrun

pytest.importorskip("torch")


def needs(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_small_llama(ranks):
    """Losses of 50 training steps in fp64 and fp32, state both ways, tokens from a KV cache; FLUX=off too."""
    torchrun(ranks, "llama.py", "sequence", "whole", *(["off"] if ranks == 2 else []))


@pytest.mark.parametrize("ranks", [2, 4])
def test_models_of_transformers(ranks):
    needs("transformers")
    torchrun(ranks, "huggingface.py")


def test_megatron():
    """Two by two: tensor-parallel groups beside data-parallel or pipeline ones."""
    needs("megatron")
    torchrun(4, "on_megatron.py")


def test_groups_and_compilation():
    torchrun(4, "groups.py")


def test_the_plugin_of_vllm():
    """In a stand-in with vLLM's interface; vLLM itself needs GPUs."""
    torchrun(2, "on_vllm.py")
