"""Chromium, for tests of pages; without a network."""

import os
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def find_browser():
    given = os.environ.get("SOPOOL_CHROMIUM")
    return given or next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="session")
def browser():
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if find_browser() is None:
        pytest.skip(f"no Chromium: none of {', '.join(BROWSERS)} is on PATH, and SOPOOL_CHROMIUM is not set")
    with driver.sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        found = running.chromium.launch(executable_path=find_browser(), args=arguments)
        yield found
        found.close()
