"""No test waits for ever, and none uses a file of tuned plans."""

import faulthandler
import os

import pytest

os.environ["FLUX_PLAN_CACHE"] = "none"
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # ranks that are threads of one GPU have many streams,
os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")  # and no kernel is loaded while another waits for a rank


@pytest.fixture(autouse=True)
def bounded():
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
