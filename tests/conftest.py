import importlib.util
import os
import shutil
import tempfile

import pytest
import torch
from hypothesis import HealthCheck, settings

# Fixtures that choose between two ways to compute the same serve all examples of a test.
once = [HealthCheck.function_scoped_fixture]
settings.register_profile("default", deadline=None, derandomize=True, max_examples=40, suppress_health_check=once)
settings.register_profile("long", deadline=None, max_examples=1000, suppress_health_check=list(HealthCheck))
# In Triton's interpreter an example takes as long as a hundred others.
few = 40 if os.environ.get("SOPOOL_TEST_ALL") else 4
settings.register_profile(
    "interpreted", deadline=None, derandomize=True, max_examples=few, suppress_health_check=list(HealthCheck)
)
settings.load_profile("long" if os.environ.get("SOPOOL_TEST_ALL") else "default")

if importlib.util.find_spec("triton") is not None and not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported, which is not yet

torch.set_num_threads(1)  # tests run side by side


def pytest_collection_modifyitems(config, items):
    if os.environ.get("SOPOOL_TEST_ALL"):
        return
    skip = pytest.mark.skip(reason="slow: runs in make test-all")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(autouse=True, scope="session")
def clean_temporary_folder():
    """PyG leaves generated code in the temporary folder: give it one that goes away."""
    with tempfile.TemporaryDirectory(prefix="sopool-tests-") as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder
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
