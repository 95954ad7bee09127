"""Layers, models and groups in processes under torchrun, which meet by gloo: sharded against unsharded."""

import importlib.util
import json
import sys

import pytest
from launch import run, torchrun

pytest.importorskip("torch")


def needs(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def test_a_small_llama():
    """Losses of 50 training steps in fp64 and fp32, state both ways, tokens from a KV cache, on 4 and 2 ranks; FLUX=off too."""
    torchrun(4, "llama.py")


def test_models_of_transformers():
    """On 4 ranks, and twice on 2."""
    needs("transformers")
    torchrun(4, "huggingface.py")


def test_megatron():
    """Two by two: tensor-parallel groups beside data-parallel or pipeline ones, on the host."""
    needs("megatron")
    torchrun(4, "on_megatron.py")


def test_groups_and_compilation():
    torchrun(4, "groups.py")


def test_the_other_methods():
    """Chunked overlap and FLUX=off, of rows that divide and of rows that do not."""
    torchrun(4, "other_methods.py")


def test_the_plugin_of_vllm():
    """In a stand-in with vLLM's interface; vLLM itself needs GPUs."""
    torchrun(2, "on_vllm.py")


def test_the_benchmark_of_layers(tmp_path):
    said = run([sys.executable, "-m", "flux.bench", "model", "--cpu", "--shape", "llama3-8b", "--batch", "2", "--length", "16",
                "--rounds", "2", "--out", tmp_path])
    for why in ("no torch_symm_mem: torch's symmetric memory needs GPUs", "no transformer_engine: the package",
                "decode: no chunked: few rows"):
        assert why in said
    (path,) = tmp_path.glob("*-cpux*-model.json")
    rows = json.loads(path.read_text())["rows"]
    assert [(row["phase"], row["method"]) for row in rows] == [
        (phase, method) for phase in ("train", "prefill", "decode")
        for method in ("flux", "megatron_style", "vllm_style", "chunked")
        if (phase, method) not in (("decode", "megatron_style"), ("decode", "chunked"))]
    assert all(0 < row["error"] < 1e-5 and 0 < row["p10_us"] <= row["total_us"] for row in rows)


def test_the_overhead_of_a_call(tmp_path):
    run([sys.executable, "-m", "flux.bench", "overhead", "--cpu", "--out", tmp_path])
    (path,) = tmp_path.glob("*-cpux*-overhead.json")
    rows = json.loads(path.read_text())["rows"]
    assert [row["op"] for row in rows[::6]] == ["ag_gemm", "gemm_rs", "gemm_ar"]
    assert [row["variant"] for row in rows[:6]] == ["C++", "Python, out=", "Python", "torch.ops", "torch_ops",
                                                   "torch_ops, gradients to come"]
    assert all(0 < row["total_us"] < 1e4 and 0 < row["error"] < 1e-5 for row in rows)


def test_the_benchmark_says_what_it_needs():
    with pytest.raises(AssertionError, match="GPUs for 9 ranks; --cpu measures small shapes on cores"):
        run([sys.executable, "-m", "flux.bench", "layer", "--tp", "9"])
