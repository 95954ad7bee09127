"""Finds a Chromium and opens it without a window, for pictures and tests of pages."""

import contextlib
import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """Its path: what FLUX_CHROMIUM names, or the first in PATH."""
    named = os.environ.get("FLUX_CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


def why_not() -> str | None:
    """What keeps us from opening one, in a sentence."""
    if not chromium():
        return "no Chromium found: scripts/setup.sh test installs it, or name yours in FLUX_CHROMIUM"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "no Python package playwright found: scripts/setup.sh test installs it into .venv"
    return None


@contextlib.contextmanager
def open_browser():
    from playwright.sync_api import sync_playwright

    # Chromium refuses its sandbox to root; the pages are our own.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()
