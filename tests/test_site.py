"""The documentation builds without a warning, and its pages ask for nothing from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FETCHED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}
NOT_FETCHED = {"canonical", "next", "prev"}
OUTSIDE = re.compile(r"(https?:)?//")


class Fetched(HTMLParser):
    """The addresses that a page loads by itself."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in FETCHED and given.get("rel") not in NOT_FETCHED:
            self.found.append(given.get(FETCHED[tag]) or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_fetched_addresses_are_found():
    page = '<img src="https://a/b.png"><script src="//c/d.js"></script><a href="https://e">e</a><link href="f.css">'
    assert [bool(OUTSIDE.match(one)) for one in Fetched(page).found] == [True, True, False]


@pytest.mark.slow
def test_no_page_fetches_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        found = Fetched(page.read_text(encoding="utf-8")).found
        assert found
        assert not [one for one in found if OUTSIDE.match(one)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8")), style


@pytest.mark.slow
def test_marks_of_restructured_text_and_formulae_are_rendered(site):
    page = (site / "reference" / "nn.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert not re.findall(r":(?:class|func|meth|math|data|mod|attr|sub):`|\.\. math::|`_\b|\\mathbb", page)


@pytest.mark.slow
def test_search_works_from_a_folder(site, browser):
    asked = []
    trouble = []
    tab = browser.new_page()
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.goto((site / "index.html").as_uri())
    tab.click(".md-search__input")
    tab.keyboard.type("covariance")
    tab.wait_for_selector(".md-search-result__item")
    assert not trouble
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    tab.close()
