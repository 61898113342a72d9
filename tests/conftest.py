import importlib.util
import multiprocessing.process
import os
import shutil
import subprocess
import tempfile

import pytest
import torch
from hypothesis import HealthCheck, settings

ALL = bool(os.environ.get("SOPOOL_TEST_ALL"))
FAST = bool(os.environ.get("SOPOOL_TEST_FAST"))

# Fixtures that choose between two ways to compute the same serve all examples of a test.
once = [HealthCheck.function_scoped_fixture]
settings.register_profile("default", deadline=None, derandomize=True, max_examples=25, suppress_health_check=once)
settings.register_profile("long", deadline=None, max_examples=1000, suppress_health_check=list(HealthCheck))
# In Triton's interpreter an example takes as long as a hundred others.
few = 40 if ALL else 4
settings.register_profile(
    "interpreted", deadline=None, derandomize=True, max_examples=few, suppress_health_check=list(HealthCheck)
)
settings.register_profile("fast", settings.get_profile("default"), max_examples=8)
settings.load_profile("long" if ALL else "fast" if FAST else "default")

if importlib.util.find_spec("triton") is not None and not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported, which is not yet

torch.set_num_threads(1)  # tests run side by side


def pytest_collection_modifyitems(config, items):
    if ALL:
        return
    skip = pytest.mark.skip(reason="slow: runs in make test-all")
    seen = set()
    others = []
    for item in items:
        function = item.nodeid.partition("[")[0]
        if "slow" in item.keywords:
            item.add_marker(skip)
        elif function in seen:
            others.append(item)
        else:
            seen.add(function)
    if FAST:
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    """In make test-fast a test ends, skipped, where it would start a process."""

    def refuse(*_, **__):
        pytest.skip("starts a process: runs in make test")

    if FAST:
        monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
        monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refuse)


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk():
    """Nothing that tests write must outlast a power failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def clean_temporary_folder():
    """PyG leaves generated code in the temporary folder: give it one that goes away."""
    with tempfile.TemporaryDirectory(prefix="sopool-tests-") as folder:
        before = tempfile.tempdir
        tempfile.tempdir = folder
        yield
        tempfile.tempdir = before


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def fresh_compiler():
    """Compiled code must not leak from one test into the recompilation limit of the next."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser():
    """Chromium, for pages that are looked at as a user does."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("SOPOOL_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no Chromium: none of {', '.join(BROWSERS)} is on PATH, and SOPOOL_CHROMIUM is not set")
    with driver.sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        found = running.chromium.launch(executable_path=path, args=arguments)
        yield found
        found.close()
