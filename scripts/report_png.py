"""report_png.py PAGE FOLDER: the charts of a page of `flux report` as PNG, each overview, workload and timeline.

The page draws them and Chromium photographs them, twice as sharp as on a screen. Exit code 2 without Chromium.
"""

import argparse
import pathlib
import re
import sys

import browser


def pictures(page):
    """(name, element) for each chart."""
    for i, strip in enumerate(page.query_selector_all("#overview .strip")):
        yield f"overview-{i + 1}", strip
    seen = {}
    for card in page.query_selector_all("#workloads article, #timelines article"):
        name = re.sub(r"[^a-z0-9]+", "-", card.query_selector("h3").inner_text().lower()).strip("-")
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}-{seen[name]}", card


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="words that the page's own search narrows the workloads to")
    parser.add_argument("--width", type=int, default=900, help="of the window, in CSS pixels")
    parser.add_argument("--theme", choices=["light", "dark"], default="light")
    options = parser.parse_args()
    reason = browser.why_not()
    if not reason and not options.page.is_file():
        reason = f"{options.page} is no file; flux report writes one"
    if reason:
        print(f"report_png: {reason}", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    with browser.open_browser() as chromium:
        page = chromium.new_page(viewport={"width": options.width, "height": 1000}, device_scale_factor=2,
                                 color_scheme=options.theme)
        page.goto(options.page.absolute().as_uri())
        if options.only:
            page.fill("input[name=words]", options.only)
            page.wait_for_function("view.words !== '' && !choosing()")
        page.evaluate("document.querySelectorAll('article.card').forEach(openCard)")
        page.wait_for_function("allDrawn()")
        for name, element in pictures(page):
            path = options.folder / f"{name}.png"
            element.screenshot(path=path)
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
