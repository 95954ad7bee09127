"""What the page of `flux report` shows: the numbers of its files, in tables, bars and lines."""

import re
import statistics

import pytest

UNITS = {"µs": 1, "ms": 1e3, "s": 1e6}
FIELDS = ["m", "total_us", "gemm_us", "ect_us", "efficiency", "comm_us", "link_gbps", "p10_us", "p90_us",
          "n", "k", "tp", "floor_us", "peak_floor_us", "p50_us", "p99_us", "read_gbps", "budget_gemm_us",
          "budget_fusion_us", "budget_head_us", "budget_traffic_us", "budget_sum_us", "budget_tail_us"]


def number(text):
    """A shown number, and how far it may be from the true one by rounding."""
    plain = text.replace("−", "-").replace("\u202f", "")
    assert re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", plain), text
    mantissa, _, power = plain.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(power or 0)
    return float(plain), 0.5 * 10.0 ** -digits * (1 + 1e-6)


def assert_shows(text, value):
    if value is None:
        assert text == "–"
    else:
        shown, slack = number(text)
        assert abs(shown - value) <= slack, (text, value)


def assert_shows_time(text, us):
    if us is None:
        assert text == "–"
    else:
        plain, unit = text.split("\u00a0")
        shown, slack = number(plain)
        assert abs(shown * UNITS[unit] - us) <= slack * UNITS[unit], (text, us)


def tflops(row):
    if row["op"] in ("layer", "model") or row["method"] == "comm":
        return None
    return 2 * row["m"] * row["n"] * row["k"] / row["tp"] / (row["total_us"] * 1e-6) / 1e12


def over_floor(row):
    return row["total_us"] / row["floor_us"] if row["floor_us"] and row["method"] != "comm" else None


def open_all_cards(tab):
    tab.evaluate("document.querySelectorAll('article.card').forEach(openCard)")
    tab.wait_for_function("allDrawn()")


def table(tab):
    """Each line: the row's number, then text by column."""
    return tab.evaluate("""() => [...document.querySelectorAll('#rows tbody tr')].map(line => [Number(line.dataset.row),
        Object.fromEntries([...line.cells].map((cell, i) => [columns[i].name, cell.textContent]))])""")


def column(tab, name):
    return [cells[name] for _, cells in table(tab)]


def test_the_table_shows_every_row(tab, rows):
    lines = table(tab)
    assert [index for index, _ in lines] == list(range(len(rows)))
    for index, cells in lines:
        for field in FIELDS:
            assert_shows(cells[field], rows[index].get(field))
        assert_shows(cells["tflops"], tflops(rows[index]))
        assert_shows(cells["over_floor"], over_floor(rows[index]))
        assert_shows(cells["error"], rows[index]["error"])
        assert cells["workload"] == rows[index]["workload"] and cells["variant"] == rows[index]["variant"]


def test_bars_show_every_row(tab, rows):
    open_all_cards(tab)
    shown = tab.evaluate("""() => [...document.querySelectorAll('#workloads .value')].map(text =>
        [Number(text.dataset.row), text.classList[1], text.textContent])""")
    assert {index for index, _, _ in shown} == set(range(len(rows)))
    values = {"total": lambda row: row["total_us"], "ect": lambda row: row["ect_us"],
              "efficiency": lambda row: row["efficiency"], "over-floor": over_floor, "tflops": tflops}
    for index, kind, text in shown:
        (assert_shows_time if kind in ("total", "ect") else assert_shows)(text, values[kind](rows[index]))


def test_lengths_of_bars_are_gemm_and_ect(tab, rows):
    open_all_cards(tab)
    bars = tab.evaluate("""() => [...document.querySelectorAll('#workloads .bar')].map(bar => [Number(bar.dataset.row),
        Object.fromEntries([...bar.querySelectorAll('rect')].map(
            rect => [rect.classList[0], Number(rect.getAttribute('width'))]))])""")
    assert {"ect", "saved", "whole"} <= {kind for _, widths in bars for kind in widths}
    for index, widths in bars:
        row = rows[index]
        if "whole" in widths:
            assert row["op"] in ("gemm", "layer") or row["method"] == "comm"
        elif "ect" in widths:
            assert widths["ect"] / widths["gemm"] == pytest.approx(row["ect_us"] / row["gemm_us"], abs=0.01)
        else:
            assert widths["saved"] / widths["gemm"] == pytest.approx(-row["ect_us"] / row["total_us"], abs=0.01)


def test_lines_are_drawn_to_scale(tab, rows):
    """E of the invented workload: heights differ as the values do, up to where the scale ends."""
    open_all_cards(tab)
    points = tab.evaluate("""() => [...document.querySelectorAll('#workloads article')].find(card =>
        card.textContent.includes('made-up') && card.querySelector('[data-measure=efficiency]'))
        .querySelector('[data-measure=efficiency] polyline').getAttribute('points').split(' ')
        .map(point => Number(point.split(',')[1]))""")
    flux = [row["efficiency"] for row in rows if row["workload"] == "made-up" and row["method"] == "flux"
            and row["op"] == "ag_gemm" and not row["variant"]]
    assert len(points) == len(flux) == 3
    assert (points[0] - points[1]) / (points[2] - points[1]) == pytest.approx(
        (flux[1] - flux[0]) / (flux[1] - flux[2]), rel=0.02)


def test_what_leaves_the_scale_is_said(tab, rows):
    open_all_cards(tab)
    beyond = tab.locator("[data-measure=efficiency] .beyond").all_text_contents()
    least = min(row["efficiency"] for row in rows if row["efficiency"] is not None and row["workload"] == "made-up")
    assert least < -1 and f"↓ −{-least:.2f}" in beyond


def test_the_overview_shows_medians(tab, rows):
    shown = tab.evaluate("""() => [...document.querySelectorAll('#overview .strip')].map(strip => Object.fromEntries(
        [...strip.querySelectorAll('[data-median]')].map(text => [text.dataset.median, text.textContent])))""")
    made = [row for row in rows if row["workload"] == "made-up" and row["method"] == "flux" and not row["variant"]]
    of = [over_floor(row) for row in made if row["floor_us"]]
    assert shown[0]["flux"] == f"median {statistics.median(of):.3f} of {len(of)}"
    assert set(shown[1]) == {"flux", "none"}


def test_ablations_never_stand_for_the_method(tab):
    open_all_cards(tab)
    assert tab.locator(".bars:has-text('Ablations') text:has-text('order=naive')").count() == 3
    assert tab.locator(".bars:has-text('Ablations') text:has-text('timeline')").count() == 3
    own = tab.locator(".bars:has-text('Time: GEMM + ECT')").first
    assert "order=naive" not in own.inner_text()


def test_a_method_has_one_colour_everywhere(tab, rows):
    """Bars of the plan's own choice, of what was forced and of the exchange alone are filled as the legend is."""
    open_all_cards(tab)
    fills = tab.evaluate("""() => [...document.querySelectorAll('#workloads .bar')].map(bar => [Number(bar.dataset.row),
        [...bar.querySelectorAll('[fill]')].map(part => part.getAttribute('fill'))])""")
    seen = {}
    for index, fill in fills:
        seen.setdefault(rows[index]["method"], set()).update(fill)
    assert seen["flux"] == {"url(#fill-flux)"} and seen["comm"] == {"url(#fill-comm)"}
    assert seen["chunked"] == {"url(#fill-chunked)"} and seen["flux_open"] == {"url(#fill-flux_open)"}
    forced = tab.locator(".bars:has-text('Ablations')").first.inner_text()
    assert "order=naive" in forced and "timeline" in forced


def test_the_page_names_machines_commits_and_what_is_missing(tab):
    text = tab.inner_text("main")
    for part in ("1 × NVIDIA H200", "2 cores of Intel(R) Xeon(R) Processor", "0123456789ab", "3984cc43d720",
                 "flux bench <b>&amp;", "torn.json", "2 machines"):
        assert part in text, part
    assert "What am I looking at?" in text and "Effective communication time" in text


def test_reads_well_without_scripts(opened, page_file):
    tab = opened(page_file, java_script_enabled=False)
    assert "drawn by JavaScript, which is off here" in tab.inner_text("main")
