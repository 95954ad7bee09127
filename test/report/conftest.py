"""Pages of `flux report` in a headless Chromium, and the numbers they were made from."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import browser as browsers  # noqa: E402

FLUX = os.environ.get("FLUX_CLI", str(ROOT / "build/release/flux"))
HOST = ROOT / "bench/results/2026-11-29-cpux2-host.json"


def invented_file(sizes=(64, 1024, 4096)):
    """Methods, ablations, an ECT below 0, an E far below 0, values that are not there, a GEMM with no exchange."""
    rows = []

    def add(op, m, method, total, variant="", gemm=100.0, **more):
        row = {
            "workload": "made-up", "op": op, "m": m, "n": 4096, "k": 1024, "tp": 8, "dtype": "bf16",
            "weight": "[out,in]", "epilogue": "none", "world": "mirror", "nodes": 1, "link": "pcie", "duplex": True,
            "incoming": None, "method": method, "variant": variant, "timing": "graph", "cache": "warm", "phase": None,
            "total_us": total, "p10_us": total * 0.97, "p90_us": total * 1.06, "samples": 9, "p50_us": None,
            "p99_us": None, "read_gbps": None, "gemm_us": gemm, "gemm_by": "cublaslt", "comm_us": 80.0,
            "link_gbps": 12.345 + m / 1000, "ect_us": total - gemm, "efficiency": 1 - (total - gemm) / 80.0,
            "floor_us": gemm, "peak_floor_us": gemm, "plan": "sm90 fused=yes", "error": 1.234e-3}
        rows.append(row | more)

    for i, m in enumerate(sizes):
        add("ag_gemm", m, "none", 180 + i, efficiency=0.0)
        add("ag_gemm", m, "flux", 97.25 if i == 1 else 117.123 + i)
        add("ag_gemm", m, "chunked", 150.5 if i else 345.678)
        add("ag_gemm", m, "flux", 133.3 + i, variant="order=naive")
        add("ag_gemm", m, "flux", 118.5 + i, variant="timeline")
        add("ag_gemm", m, "flux_open", 104.5 + i,
            **{f"budget_{part}_us": 1.5 - i for part in ("gemm", "fusion", "head", "traffic", "sum", "tail")})
        add("ag_gemm", m, "comm", 81.5 + i, comm_by="a kernel", ect_us=None, efficiency=None)
        add("ag_gemm", m, "somebody_else", 140.0, efficiency=None)
    add("gemm", 1024, "cublaslt", 100.0, comm_us=None, link_gbps=None, ect_us=None, efficiency=None, floor_us=None,
        peak_floor_us=None)
    add("layer", 1024, "flux", 1234567.8, gemm_us=None, gemm_by=None, ect_us=None, efficiency=None, floor_us=None,
        peak_floor_us=None, phase="decode", p50_us=1234567.8, p99_us=2345678.9, read_gbps=3456.78)
    return {"schema": 1, "suite": "made", "date": "2026-12-01T10:00:00Z", "commit": "0123456789ab",
            "command": "flux bench <b>&amp;", "rows": rows,
            "machine": {"gpu": "NVIDIA H200", "gpus": 1, "cpu": None, "cores": None, "link": None, "driver": None,
                        "cuda": "13.0", "nccl": None, "torch": None}}


def report(page, *arguments):
    done = subprocess.run([FLUX, "report", *map(str, arguments), "-o", str(page)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return page


@pytest.fixture(scope="module")
def browser():
    reason = browsers.why_not()
    if reason and (os.environ.get("FLUX_REQUIRE_CHROMIUM") == "1" or os.environ.get("CI")):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with browsers.open_browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def rows():
    """As the page numbers them: the newest file first."""
    return invented_file()["rows"] + json.loads(HOST.read_text())["rows"]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    made, torn, trace = folder / "made.json", folder / "torn.json", folder / "trace.json"
    made.write_text(json.dumps(invented_file()))
    torn.write_text('{"schema": 1,')
    run = [FLUX, "run", "ag_gemm", "--m", "256", "--n", "256", "--k", "256", "--ranks", "2", "--samples", "0"]
    subprocess.run([*run, "--timeline", str(trace)], check=True, capture_output=True)
    return report(folder / "report.html", HOST, made, torn, "--timeline", trace)


@pytest.fixture
def opened(browser):
    """open(file, **context): a tab whose console must stay silent and which must ask for no other file."""
    contexts, complaints = [], []

    def open_page(file, **options):
        contexts.append(browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options)))
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: request.url == file.as_uri() or request.url.startswith("data:") or
               complaints.append(f"asks for {request.url}"))
        tab.goto(file.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture
def tab(opened, page_file):
    return opened(page_file)
