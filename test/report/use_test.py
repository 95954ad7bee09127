"""How the page of `flux report` is used: sorting, choosing, the keyboard, themes, small and large screens."""

import json
import re

import pytest
from conftest import invented_file, report
from page_test import assert_shows, column, number, open_all_cards


def press_heading(tab, name):
    tab.click(f"#rows th[data-column={name}] button")


def test_sorts_by_numbers_with_missing_ones_last(tab, rows):
    press_heading(tab, "efficiency")
    values = [row["efficiency"] for row in rows if row["efficiency"] is not None]
    for order, aria in ((sorted(values), "ascending"), (sorted(values, reverse=True), "descending")):
        shown = column(tab, "efficiency")
        assert tab.get_attribute("th[data-column=efficiency]", "aria-sort") == aria
        for text, value in zip(shown, order):
            assert_shows(text, value)
        assert set(shown[len(order):]) == {"–"}
        press_heading(tab, "efficiency")


def test_sorts_by_the_keyboard(tab):
    tab.focus("th[data-column=total_us] button")
    tab.keyboard.press("Enter")
    tab.keyboard.press("Enter")
    shown = [number(text)[0] for text in column(tab, "total_us")]
    assert shown == sorted(shown, reverse=True)
    tab.keyboard.press("Shift+Tab")
    assert tab.evaluate("document.activeElement.parentElement.dataset.column") == "variant"


def test_words_narrow_cards_and_table(tab, rows):
    tab.fill("input[name=words]", "minilm m=8192")
    tab.wait_for_function("!choosing()")
    found = [row for row in rows if row["workload"].startswith("minilm") and row["m"] == 8192]
    assert len(column(tab, "m")) == len(found) > 0
    assert tab.locator("#workloads article").count() == 2
    tab.fill("input[name=words]", "m=81")
    tab.wait_for_function("!choosing()")
    assert column(tab, "m") == [], "a size is a whole word"
    tab.fill("input[name=words]", "nothing is called that")
    tab.wait_for_function("!choosing()")
    assert "No row fits" in tab.inner_text("#workloads") and column(tab, "m") == []


def test_lists_and_methods_narrow_too(tab, rows):
    tab.select_option("select[name=op]", "gemm_rs")
    assert len(column(tab, "op")) == sum(row["op"] == "gemm_rs" for row in rows)
    tab.click("button.method[data-method=none]")
    assert tab.get_attribute("button.method[data-method=none]", "aria-pressed") == "false"
    assert set(column(tab, "method")) == {"FLUX"}
    tab.select_option("select[name=op]", "")
    tab.select_option("select[name=variants]", "forced")
    assert set(column(tab, "variant")) == {"order=naive", "timeline"}


def test_bars_can_be_times(tab):
    tab.select_option("select[name=bars]", "time")
    open_all_cards(tab)
    titles = tab.evaluate("[...document.querySelectorAll('.bars .axis-title')].map(text => text.textContent)")
    assert titles and all(re.fullmatch(r"time \((s|ms|µs)\)", title) for title in titles)


def test_arrows_read_values_off_the_lines(tab):
    open_all_cards(tab)
    card = tab.locator("#workloads article:has(.lines)").first
    card.locator(".lines").focus()
    tab.keyboard.press("ArrowRight")
    first = card.locator(".readout").inner_text()
    tab.keyboard.press("End")
    last = card.locator(".readout").inner_text()
    assert first.startswith("m 64:") and last.startswith("m 4096:")
    assert "FLUX 117.1\u00a0µs, E 0.79" in first.replace("  ", " ")
    assert card.locator(".cross[visibility=visible]").count() == card.locator(".measure").count()


def test_a_row_leads_to_its_charts(tab):
    link = tab.locator("#rows tbody a").first
    target = link.get_attribute("href")
    link.focus()
    tab.keyboard.press("Enter")
    assert tab.evaluate("location.hash") == target and tab.locator(target).count() == 1


def test_the_timeline_is_read_and_zoomed_by_the_keyboard(tab):
    tab.focus("canvas")
    whole = tab.evaluate("document.querySelector('canvas').toDataURL()")
    tab.keyboard.press("Enter")
    told = tab.inner_text(".trace .readout")
    assert re.match(r"rank 0, .*: .* from .* for .*", told), told
    for _ in range(4):
        tab.keyboard.press("+")
    assert tab.evaluate("document.querySelector('canvas').toDataURL()") != whole
    tab.keyboard.press("ArrowDown")
    assert "Enter reads them" in tab.inner_text(".trace .readout")
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate("document.querySelector('canvas').toDataURL()") == whole
    tab.click("button[aria-label='Zoom in']")
    assert tab.evaluate("document.querySelector('canvas').toDataURL()") != whole


def test_focus_can_be_seen(tab):
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "theme"
    assert float(tab.evaluate("getComputedStyle(document.activeElement).outlineWidth").removesuffix("px")) >= 2


def luminance(colour):
    channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def colours(tab):
    """Each colour variable of the theme, as the browser computes it."""
    return tab.evaluate("""() => {
        const probe = document.body.appendChild(document.createElement('i')), all = {};
        const methods = [...methodOrder, 'other'].map(name => 'method-' + name);
        for (const name of ['card', 'page', 'ink', 'soft', 'accent', ...methods]) {
            probe.style.color = `var(--${name})`;
            all[name] = getComputedStyle(probe).color;
        }
        probe.remove();
        return all;
    }""")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out_in_both_themes(opened, page_file, theme):
    tab = opened(page_file, color_scheme=theme)
    of = colours(tab)
    assert (luminance(of["page"]) < 0.1) == (theme == "dark")
    for name in ("ink", "soft", "accent"):
        assert contrast(of[name], of["card"]) >= 4.5, name
    methods = {name: colour for name, colour in of.items() if name.startswith("method-")}
    assert len(set(methods.values())) == len(methods)
    for name, colour in methods.items():
        assert contrast(colour, of["card"]) >= 3, name


def test_the_theme_button_wins_over_the_system(opened, page_file):
    tab = opened(page_file, color_scheme="dark")
    dark = colours(tab)["page"]
    tab.click("#theme")
    assert tab.inner_text("#theme") == "Theme: light" and colours(tab)["page"] != dark
    tab.click("#theme")
    assert tab.inner_text("#theme") == "Theme: dark" and colours(tab)["page"] == dark


def test_methods_differ_without_colour(tab):
    looks = tab.evaluate("methodOrder.map(name => knownMethods[name].marker + ' ' + knownMethods[name].pattern)")
    assert len(set(looks)) == len(looks)


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_nothing_is_wider_than_the_screen(opened, page_file, width):
    tab = opened(page_file, viewport={"width": width, "height": 800})
    open_all_cards(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    cut = tab.evaluate("""() => [...document.querySelectorAll('.chart text')].filter(text => {
        const box = text.getBoundingClientRect(), chart = text.ownerSVGElement.getBoundingClientRect();
        return box.right > chart.right + 2 || box.left < chart.left - 2;
    }).map(text => text.textContent)""")
    assert not cut


def test_thousands_of_rows_open_quickly(opened, tmp_path):
    large = invented_file()
    large["rows"] = [row | {"workload": f"w{i}"} for i in range(300) for row in large["rows"]]
    (tmp_path / "large.json").write_text(json.dumps(large))
    tab = opened(report(tmp_path / "report.html", tmp_path / "large.json"))
    assert tab.locator("#rows tbody tr").count() == 100
    ready = tab.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert ready < 10000, "ms, with room for a busy machine"
    tab.click("text=Show 100 more")
    assert tab.locator("#rows tbody tr").count() == 200
    drawn = tab.locator("#workloads svg.chart").count()
    assert 0 < drawn < 100, "only what is near the screen"
