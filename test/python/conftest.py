"""No test waits for ever, and none uses a file of tuned plans."""

import faulthandler
import os

import pytest

os.environ["FLUX_PLAN_CACHE"] = "none"


@pytest.fixture(autouse=True)
def bounded():
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
