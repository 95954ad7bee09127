"""The figures of README.md and docs/engines.md are those of the result files they name."""

import json
import re
import sys
from math import exp, log

import pytest
from repository import ROOT, text

sys.path.insert(0, str(ROOT / "scripts"))
import result_tables  # noqa: E402

WORKLOADS = {
    "GPT-3 fc1 (AG)": "gpt3-fc1", "GPT-3 fc2 (RS)": "gpt3-fc2", "Llama 70B gate+up (AG)": "l70b-gateup",
    "Llama 70B down (RS)": "l70b-down", "AG+GEMM 4096 × 4096": "host-ag", "GEMM+RS 4096 × 4096": "host-rs",
    "MiniLM up (AG)": "minilm-up", "MiniLM down (RS)": "minilm-down"}


def rows_of(path):
    return json.loads(text(path))["rows"]


def table_after(document, heading_cell):
    """The cells of the first table with that title over its first column, a list a line, titles first."""
    lines = document.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading_cell} |"))
    table = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return [table[0]] + table[2:]


def one(rows, **wanted):
    found = [row for row in rows if all(row[field] == value for field, value in wanted.items())]
    assert len(found) == 1, wanted
    return found[0]


def flux_and_none(path, **problem):
    """The row of the fused operator, and that of one after the other."""
    return [one(rows_of(path), method=method, variant="", **problem) for method in ("flux", "none")]


def test_the_gemm_table():
    readme = text("README.md")
    path = re.search(r"From `(bench/results/[^`]*gemm\.json)`", readme).group(1)
    _, *lines = table_after(readme, "layer")
    assert len(lines) >= 6
    for layer, m, *cells in lines:
        methods = ("cublaslt", "cutlass", "flux", "flux_open")
        times = [one(rows_of(path), workload=WORKLOADS[layer], m=int(m), tp=8, method=method)["total_us"]
                 for method in methods]
        assert cells == [f"{time:.0f}" for time in times], f"{layer} m={m}"


def test_the_host_table():
    readme = text("README.md")
    path = re.search(r"From `(bench/results/[^`]*host\.json)`", readme).group(1)
    _, *lines = table_after(readme, "workload")
    assert len(lines) >= 4
    for layer, m, ranks, *cells in lines:
        problem = {"workload": WORKLOADS[layer], "m": int(m), "tp": int(ranks)}
        flux, none = flux_and_none(path, **problem)
        times = [flux["gemm_us"], none["total_us"], flux["total_us"]]
        assert cells == [f"{time / 1e3:.0f}" for time in times] + [f"{flux['efficiency']:.2f}"], f"{layer} m={m}"


def of_core(path, timing, workload, m):
    """GEMM, communication, one after the other, FLUX; total / floor, E."""
    flux, none = flux_and_none(path, timing=timing, workload=workload, m=m)
    return ([flux["gemm_us"], flux["comm_us"], none["total_us"], flux["total_us"]],
            flux["total_us"] / flux["floor_us"], flux["efficiency"])


def test_the_table_of_operators_over_pcie():
    readme = text("README.md")
    path = re.search(r"From `(bench/results/[^`]*core[^`]*\.json)`", readme).group(1)
    _, *lines = table_after(readme, "operator")
    assert len(lines) >= 6
    for layer, m, *cells in lines:
        times, above, _ = of_core(path, "graph", WORKLOADS[layer], int(m))
        assert cells == [f"{time:.0f}" for time in times] + [f"{above:.2f}"], f"{layer} m={m}"


def test_the_tables_of_results():
    """As scripts/result_tables.py prints them, and the sentence above them."""
    page = text("docs/results.md")
    path = re.search(r"`(bench/results/[^`]*core[^`]*\.json)`", page).group(1)
    rows = rows_of(path)
    for timing in ("graph", "eager"):
        assert result_tables.core_table(rows, timing) in page, timing
        large = [row["total_us"] / row["floor_us"]
                 for (_, m), row in result_tables.own_rows(rows, timing, "flux").items() if m >= 4096]
        assert f"{mean(large):.3f} in the geometric mean and at most {max(large):.3f} as graphs" in page \
            or f"{mean(large):.3f} and at most {max(large):.3f} enqueued call by call" in page, timing
    if any(row.get("budget_head_us") is not None for row in rows):
        assert result_tables.budget_table(rows) in page


def test_what_a_table_of_budgets_says():
    row = {"workload": "w", "m": 64, "timing": "eager", "cache": "warm", "method": "flux", "variant": "", "gemm_us": 10,
           "comm_us": 20, "floor_us": 20, "total_us": 31.4, "budget_gemm_us": 1, "budget_fusion_us": 2,
           "budget_head_us": 3, "budget_traffic_us": -1, "budget_sum_us": 0, "budget_tail_us": 9.4}
    forced = row | {"variant": "timeline", "total_us": 99}
    assert result_tables.budget_table([row, forced]).splitlines()[2:] == [
        "| w | 64 | 20 | 31 | (1) | (2) | 3 | -1 | 0 | 9 |"]
    longer = row | {"gemm_us": 21, "floor_us": 21}
    assert "| 1 | 2 | 3 |" in result_tables.budget_table([longer])


def core_gemms(path):
    """(m, op, times by method) of each core GEMM with weights [out,in]."""
    core = {w["name"]: w["op"] for w in json.loads(text("bench/workloads.json"))["workloads"] if w["tier"] == "core"}
    problems = {}
    for row in rows_of(path):
        if row["workload"] in core and row["weight"] == "[out,in]" and row["variant"] == "":
            key = (row["m"], core[row["workload"]], row["workload"], row["tp"])
            problems.setdefault(key, {})[row["method"]] = row["total_us"]
    return [(key[0], key[1], times) for key, times in problems.items()]


def mean(values):
    values = list(values)
    return exp(sum(map(log, values)) / len(values))


@pytest.fixture
def engines():
    page = text("docs/engines.md")
    path = re.search(r"`(bench/results/[^`]*gemm\.json)`", page).group(1)
    return page, core_gemms(path)


def test_speed_against_cublaslt(engines):
    page, gemms = engines
    large = [times for m, _, times in gemms if m >= 1024]
    small = [times for m, _, times in gemms if m == 512]
    for label, group in (("m ≥ 1024", large), ("m = 512", small)):
        ours = [times["cublaslt"] / times["flux"] for times in group]
        stock = [times["cublaslt"] / times["cutlass"] for times in group]
        line = f"| {label}, {len(group)} GEMMs | {mean(ours):.3f}, least {min(ours):.3f} | {mean(stock):.3f} |"
        assert line in page
    assert f"the best cuBLASLt proposal is {mean(t['cublaslt'] / t['flux'] for t in large):.3f}" in text("README.md")


def test_what_fusion_costs(engines):
    page, gemms = engines
    for name, op in (("AG+GEMM", "ag_gemm"), ("GEMM+RS", "gemm_rs")):
        cost = [times["flux_open"] / times["flux"] for m, of, times in gemms if m >= 1024 and of == op]
        _, *lines = table_after(page, "operator")
        line = next(cells for cells in lines if cells[0].startswith(f"{name}, {len(cost)} GEMMs"))
        assert line[2] == f"{mean(cost):.3f}"
        assert line[3].split(" ")[0] == str(sum(c <= 1.02 for c in cost))
        assert line[4].startswith(f"{max(cost):.3f}")


def test_every_named_result_file_is_there():
    for page in ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]:
        for path in re.findall(r"bench/results/[\w.-]+\.json", text(page)):
            assert (ROOT / path).is_file(), f"{page} names {path}"
