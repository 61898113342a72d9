"""The tables of docs/results/search.md, from the figures that lie beside it.

    python benchmarks/search_page.py

Prints Markdown: each form on each data set, with its gain over another form, paired by fold, with the corrected
interval of `sopool evaluate`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from md_tables import gain, head, line, spread_of
from search_forms import BIMAP, FORMS, SUM

from sopool.experiments.comparison import corrected_paired_test

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
LARGE = ("PROTEINS", "NCI1", "IMDB-BINARY")
FIVE = (*LARGE, "MUTAG", "PTC")
VOTES = {"fair": "folds", "five vote": "ensemble_folds", "three of it and two of the first vote": "mixed_folds"}

Figures = Mapping[tuple[str, str], dict[str, Any]]
"""By data set and form."""


def page() -> Iterator[str]:
    """All tables of the page."""
    once = read("search.jsonl")
    combined = [form for form in forms_of(once) if "normed" in form or form.startswith("sum-avg,")]
    single = [form for form in forms_of(once) if form not in (BIMAP, SUM, *combined)]
    yield from (*table(once, [BIMAP, *single], LARGE), "")
    yield from (*table(once, [SUM, BIMAP, *combined], FIVE), "")
    closer = read("search5.jsonl")
    yield from (*table(closer, [SUM, *best_first(closer, LARGE)], FIVE), "")
    for figure in VOTES:
        yield from (*finals(read("final.jsonl"), figure), "")


def table(figures: Figures, forms: Sequence[str], datasets: Sequence[str]) -> Iterator[str]:
    """Accuracies and gains over the first of the forms."""
    yield from head("form", *datasets, "mean gain")
    base = forms[0]
    for form in forms:
        tests = [compare(figures, form, base, data, "folds") for data in datasets]
        known = [100 * test.difference for test in tests if test is not None]
        few = "" if len(known) == len(datasets) else f" ({len(known)} of {len(datasets)})"
        cells = [
            "" if test is None else with_gain(f"{100 * np.mean(figures[data, form]['folds']):.1f}", test, form != base)
            for data, test in zip(datasets, tests, strict=True)
        ]
        yield line(form, *cells, "" if form == base else f"{np.mean(known):+.1f}{few}")


def finals(figures: Figures, title: str) -> Iterator[str]:
    """One figure of the finalists, data sets by forms, with the gain over the first form."""
    name = VOTES[title]
    forms = [form for form in forms_of(figures) if all(name in one for key, one in figures.items() if key[1] == form)]
    yield from head(title, *forms)
    for data in dict.fromkeys(key[0] for key in figures):
        tests = [compare(figures, form, forms[0], data, name) for form in forms]
        cells = [spread_of(figures[data, form][name]) for form in forms]
        pairs = zip(cells, tests, forms, strict=True)
        yield line(data, *(with_gain(cell, test, form != forms[0]) for cell, test, form in pairs))


def compare(figures: Figures, form: str, base: str, data: str, name: str) -> Any:
    """The test on the folds; None where one of the two was not run."""
    one, other = figures.get((data, form)), figures.get((data, base))
    if one is None or other is None:
        return None
    return corrected_paired_test(np.array(one[name]), np.array(other[name]))


def with_gain(cell: str, test: Any, shown: bool) -> str:
    """A cell with what it gains."""
    return f"{cell}, {gain(test, bold=True)}" if shown else cell


def best_first(figures: Figures, datasets: Sequence[str]) -> list[str]:
    """The forms but the paper's Sum/Avg, by their mean over these data sets."""
    forms = [form for form in forms_of(figures) if form != SUM and all((data, form) in figures for data in datasets)]
    return sorted(forms, key=lambda form: -np.mean([np.mean(figures[data, form]["folds"]) for data in datasets]))


def forms_of(figures: Figures) -> list[str]:
    """In the order of `search_forms.py`."""
    found = {form for _, form in figures}
    return [form for form in FORMS if form in found]


def read(name: str) -> Figures:
    """One of the files, a line each for a form on a data set."""
    lines = [json.loads(text) for text in (RESULTS / name).read_text().splitlines()]
    return {(one["data"], one["form"]): one for one in lines}


if __name__ == "__main__":
    print("\n".join(page()))
