"""The figures of docs/simulator.md are those that `flux` prints."""

import json
import os
import re
import subprocess

import pytest
from numbers_test import table_after
from repository import ROOT, text

# Compilers round differently; what the text says would not change by that.
NEAR = 0.011


@pytest.fixture(scope="module")
def flux():
    path = os.environ.get("FLUX_CLI", ROOT / "build/release/flux")
    if not os.path.exists(path):
        pytest.skip("no flux in build/release; ctest says where it is")
    return lambda *arguments: json.loads(
        subprocess.run([path, *arguments, "--json"], cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def quantile(values, q):
    return sorted(values)[int(q * (len(values) - 1) + 0.5)]


def test_errors_against_measured_rows(flux):
    page = text("docs/simulator.md")
    files = list(dict.fromkeys(re.findall(r"bench/results/[\w.-]+\.json", page)))
    checked = flux("plan", "--check", *files)
    _, *lines = table_after(page, "rows")
    for name, count, *cells in lines:
        rows = [abs(row["error"]) for row in checked["rows"]
                if name == "all" or [row["op"], row["method"]] == name.split(", ")]
        assert int(count) == len(rows), name
        for cell, q in zip(cells, (0.5, 0.9, 1)):
            assert float(cell.rstrip(" %")) == pytest.approx(100 * quantile(rows, q), abs=0.3), f"{name} {q}"


def test_published_operation_times(flux):
    _, *lines = table_after(text("docs/simulator.md"), "op")
    assert len(lines) == 6
    for op, machine, none, _, fused, _ in lines:
        n, k = ("49152", "12288") if op == "ag_gemm" else ("12288", "49152")
        plan = flux("plan", op, "--m", "4096", "--n", n, "--k", k, "--machine", machine, "--dtype",
                    "fp16" if machine == "l20" else "bf16")
        assert float(none) == pytest.approx(plan["none_us"], rel=NEAR), f"{op} {machine}"
        assert float(fused) == pytest.approx(plan["total_us"], rel=NEAR), f"{op} {machine}"


def test_efficiency_ranges(flux):
    _, *lines = table_after(text("docs/simulator.md"), "machine")
    for machine, *cells in lines:
        for cell, (op, n, k) in zip(cells, (("ag_gemm", "49152", "12288"), ("gemm_rs", "12288", "49152"))):
            found = [flux("plan", op, "--m", m, "--n", n, "--k", k, "--machine", machine)["efficiency"]
                     for m in ("1024", "2048", "4096", "8192")]
            least, most = map(float, cell.split(" to "))
            assert [least, most] == pytest.approx([min(found), max(found)], abs=NEAR), f"{op} {machine}"


def test_two_nodes(flux):
    page = text("docs/simulator.md")
    _, *lines = table_after(page, "nodes of")
    rows = {(row["machine"], row["m"]): row for row in flux("simulate", "nodes")["rows"]}
    assert len(lines) == len(rows)
    for machine, m, one, none, fused, speed_up, efficiency, gain, published in lines:
        row = rows[machine, int(m)]
        shown = [float(cell) for cell in (one, none, fused)]
        assert shown == pytest.approx([row["one_flux_us"] / 1e3, row["two_none_us"] / 1e3, row["two_flux_us"] / 1e3],
                                      rel=NEAR), f"{machine} {m}"
        shown = [float(cell) for cell in (speed_up, efficiency, gain)]
        assert shown == pytest.approx([row["speed_up"], row["efficiency"], row["two_over_one"]], abs=2 * NEAR)
        stated = f"{row['published_speed_up']:.2f}, E {row['published_efficiency']:.2f}" if "published_speed_up" in row else ""
        assert published == stated, f"{machine} {m}"


def tables(page):
    """The two tables of whole models: speed-ups, and shares."""
    first = page.index("| cluster | phase |")
    second = page.index("| cluster | phase |", first + 1)
    return table_after(page[first:], "cluster")[1:], table_after(page[second:], "cluster")[1:]


def test_whole_models(flux):
    page = text("docs/simulator.md")
    simulated = flux("simulate", "table")
    cells = {(cell["machine"], cell["phase"]): cell for cell in simulated["cells"]}
    speed_ups, shares = tables(page)
    assert len(speed_ups) == len(shares) == len(cells)
    for machine, phase, gpt, llama, largest, paper, _, chunked, te in speed_ups:
        cell = cells[machine, phase]
        most = [max(row["over_none"] for row in cell["rows"] if row["model"] == model)
                for model in ("gpt3-175b", "llama2-70b")]
        assert [float(gpt), float(llama), float(largest)] == pytest.approx([*most, cell["over_none"]], abs=NEAR)
        assert float(chunked) == pytest.approx(cell["over_chunked"], abs=2 * NEAR), f"{machine} {phase}"
        assert paper == ("none" if cell["published_over_none"] is None else f"{cell['published_over_none']:.2f}")
        assert te == f"{cell['published_over_chunked']:.2f}"
    assert f"{simulated['within']} of the {simulated['compared']} are within 0.15" in page
    for machine, phase, gpt, llama, _ in shares:
        for shown, model in ((gpt, "gpt3-175b"), (llama, "llama2-70b")):
            row = [row for row in cells[machine, phase]["rows"] if row["model"] == model][-1]
            stated = [float(part) for part in shown.rstrip(" %").split(" / ")]
            found = [100 * row[f"{method}_share"] for method in ("none", "chunked", "flux")]
            assert stated == pytest.approx(found, abs=1.0), f"{machine} {phase} {model}"
