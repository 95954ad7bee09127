"""scripts/exhaustive.py: what it says of a file whose figures are known."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from repository import ROOT

SCRIPT = ROOT / "scripts/exhaustive.py"


def script():
    spec = importlib.util.spec_from_file_location("exhaustive", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def timed(plan, simulated, measured):
    return {"plan": plan, "simulated_us": simulated, "measured_us": measured}


def result(timings, untuned, opened="fused=yes route=auto"):
    best = min((t for t in timings if t["measured_us"]), key=lambda t: t["measured_us"])
    return {"op": "gemm_rs", "m": 512, "n": 4096, "k": 4096, "tp": 8, "plan": best["plan"], "untuned_plan": untuned,
            "open_plan": opened, "timed": timings}


def test_each_choice_against_the_best_of_all():
    """The best of all is simulated worst, so tuning does not try it; its eight hold the second best."""
    rest = [timed(f"fused=yes route=stage band={i}", 101 + i, 130) for i in range(8)]
    timings = [timed("fused=yes route=auto", 100, 120), timed("fused=yes route=stage", 100.5, 110), *rest,
               timed("fused=no route=auto", 140, 125), timed("fused=yes route=push", 150, 100),
               timed("fused=yes route=ring", 99, None)]
    count, best, over = script().excesses(result(timings, "fused=yes route=auto"))
    assert (count, best) == (12, 100)
    assert over == pytest.approx([0.20, 0.20, 0.10])


def test_not_fusing_is_always_among_the_tuned():
    timings = [timed(f"fused=yes route=stage band={i}", 100 + i, 130) for i in range(9)]
    timings.append(timed("fused=no route=auto", 140, 125))
    _, best, over = script().excesses(result(timings, "fused=yes route=stage band=0", opened="not timed"))
    assert best == 125
    assert over[0] == pytest.approx(130 / 125 - 1)
    assert over[1:] == [None, 0]


def test_plans_that_are_known_to_be_timed_are_the_tuned():
    timings = [timed("fused=yes route=stage", 100, 130), timed("fused=yes route=push", 150, 104),
               timed("fused=yes route=ring", 160, 100)]
    again = {**result(timings, "fused=yes route=stage"), "tuned_plans": ["fused=yes route=push", "not in the file"]}
    _, _, over = script().excesses(again)
    assert over[2] == pytest.approx(0.04)


def test_plans_are_simulated_anew_by_the_flux_at_hand(tmp_path):
    flux = os.environ.get("FLUX_CLI", ROOT / "build/release/flux")
    if not os.path.exists(flux):
        pytest.skip("no flux in build/release; ctest says where it is")
    usual = subprocess.run([flux, "plan", "ag_gemm", "--m", "512", "--n", "4096", "--k", "4096", "--machine", "h200-pcie",
                            "--json"], capture_output=True, text=True, check=True).stdout
    plans = [c["plan"] for c in json.loads(usual)["candidates"] if c.get("total_us") and "out" not in c][:3]
    before = {**result([timed(plan, 1, 100) for plan in plans], plans[0]), "op": "ag_gemm", "dtype": "bf16"}
    after = script().simulated_again(before, flux, "h200-pcie")
    assert [t["plan"] for t in after["timed"]] == plans
    assert all(20 < t["simulated_us"] < 1000 for t in after["timed"])
    assert after["untuned_plan"] == json.loads(usual)["plan"]
    assert len(after["tuned_plans"]) == 10


def test_it_prints_a_table_and_the_bars(tmp_path):
    file = tmp_path / "exhaustive.json"
    timings = [timed("fused=yes route=auto", 100, 102), timed("fused=yes route=stage", 101, 100)]
    file.write_text(json.dumps([result(timings, "fused=yes route=auto")]))
    said = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True, check=True).stdout
    assert "| gemm_rs | 512 | 4096 | 4096 | 8 | 2 | 100 | 2.0 % | 2.0 % | 0.0 % | route=stage |" in said
    assert "untuned: 1 of 1 within 5.0 %, the worst 2.0 %" in said
    assert "tuned: 1 of 1 within 1.0 %, the worst 0.0 %" in said
    assert "19 workloads are not measured yet" in said


def test_its_workloads_are_twenty_that_nothing_was_fitted_to():
    workloads = script().WORKLOADS
    assert len(set(workloads)) == 20
    # The extended suite was measured when all was fitted, and holds four of them.
    files = [path for path in (ROOT / "bench/results").glob("*h200*.json") if "extended" not in path.name]
    fitted = {(row["op"], row["m"], row["n"], row["k"]) for path in files
              for row in json.loads(path.read_text())["rows"] if row["op"] != "gemm"}
    assert not [w for w in workloads if w[:4] in fitted]
