"""The page in a real browser: Chromium, without a network."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from sopool.experiments.summary import summarise
from sopool.report.page.html import page
from tests.helpers.seen import Seen
from tests.helpers.stores import PROTOCOLS, fill

NAMES = ("TOY", "<script>alert(1)</script>")
POOLS = (("sum", 0.6), ("sopool-bimap", 0.8), ("covpool", 0.7))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    store = fill(folder / "runs", NAMES, POOLS)
    path = folder / "report.html"
    path.write_text(page(summarise(store)), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, written):
    tabs = []

    def open_page(width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(60_000)
        seen = Seen(context.new_page())
        tabs.append((context, seen))
        seen.tab.goto(written.as_uri())
        return seen

    yield open_page
    for context, seen in tabs:
        assert seen.requests == [written.as_uri()], "something was asked for outside the page"
        assert seen.trouble == []
        context.close()


def column(tab, number):
    return tab.locator("#scores ~ figure tbody tr").evaluate_all(
        "(rows, i) => rows.map((row) => row.cells[i].textContent)", number
    )


def test_it_draws_what_is_in_sight_and_the_rest_when_it_comes(opened):
    tab = opened().tab
    tab.locator("#differences").scroll_into_view_if_needed()
    tab.wait_for_selector("[data-protocol=fair] .plot .main-svg")
    drawn = tab.locator(".plot[data-drawn]").count()
    assert 0 < drawn < tab.locator(".plot").count()
    tab.locator("details .plot").nth(1).scroll_into_view_if_needed()
    tab.wait_for_function("count => document.querySelectorAll('.plot[data-drawn]').length > count", arg=drawn)


def test_tables_are_sorted_by_keyboard_and_back(opened):
    tab = opened().tab
    before = column(tab, 4)
    button = tab.locator("#scores ~ figure thead button").nth(3)
    button.focus()
    tab.keyboard.press("Enter")
    figures = [float(text.split()[0]) for text in column(tab, 3)]
    assert figures == sorted(figures)
    assert button.locator("xpath=..").get_attribute("aria-sort") == "ascending"
    tab.keyboard.press("Enter")
    assert [float(text.split()[0]) for text in column(tab, 3)] == sorted(figures, reverse=True)
    tab.locator("#scores ~ figure thead button").nth(0).click()
    assert column(tab, 0) == sorted(column(tab, 0))
    assert sorted(column(tab, 4)) == sorted(before)


def test_the_protocol_can_be_chosen(opened):
    tab = opened().tab
    for protocol in PROTOCOLS:
        tab.locator(f"input[value={protocol}]").check()
        for other in PROTOCOLS:
            assert tab.locator(f"#details ~ [data-protocol={other}]").is_visible() == (other == protocol)


def test_names_are_shown_and_never_run(opened):
    tab = opened().tab
    assert NAMES[1] in column(tab, 0)
    tab.locator("#ranks").scroll_into_view_if_needed()
    tab.wait_for_selector("#ranks ~ [data-protocol=fair] .plot .main-svg")
    assert NAMES[1] in tab.locator("#differences ~ [data-protocol=fair] .main-svg").first.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_small_screen_and_has_contrast(opened, scheme):
    tab = opened(390, scheme).tab
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    colours = tab.evaluate(
        """() => ["p", "figcaption", "a[href='#read']", ".warn", "th button", "h4"].map((selector) => {
            const style = getComputedStyle(document.querySelector(selector));
            return [style.color, getComputedStyle(document.body).backgroundColor];
        })"""
    )
    assert all(contrast(*pair) >= 4.5 for pair in colours), colours


def contrast(one, other):
    """Of two colours, as WCAG 2 defines it."""
    lights = sorted(luminance(colour) for colour in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour):
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_paper_has_everything_that_can_be_opened(opened, tmp_path):
    tab = opened().tab
    closed = tab.locator("details:not([open])").count()
    assert closed
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("details:not([open])").count() == 0
    tab.wait_for_function(
        "[...document.querySelectorAll('.plot')].filter((p) => p.offsetParent).every((p) => p.dataset.drawn)"
    )
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator("details:not([open])").count() == closed
    assert tab.pdf(format="A4").startswith(b"%PDF")


class Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.headings = []
        self.unnamed = []
        self.outside = []
        self.ids = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag in ("h1", "h2", "h3", "h4", "h5"):
            self.headings.append(int(tag[1]))
        if given.get("role") in ("img", "region") and not given.get("aria-label"):
            self.unnamed.append(given)
        if tag in ("link", "img", "iframe") or "src" in given or given.get("href", "#")[0] != "#":
            self.outside.append((tag, given))
        self.ids += [given["id"]] if "id" in given else []


def test_the_outline(written):
    outline = Outline()
    outline.feed(written.read_text("utf-8"))
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert outline.unnamed == outline.outside == []
    assert len(set(outline.ids)) == len(outline.ids)


def test_the_optimistic_is_called_so(written):
    text = written.read_text("utf-8")
    assert "per-fold-max (optimistic)" in text
    assert "Because the selection uses the test graphs" in text


def test_without_any_outcome_there_is_still_a_page(tmp_path):
    store = fill(tmp_path, ("NOWHERE",), keep=False)
    summary = summarise(store)
    assert summary.protocols == []
    text = page(replace(summary, notes=["<b>why</b>"]))
    assert "&lt;b&gt;why&lt;/b&gt;" in text
