"""The tables of the pages under docs/results, from the figures that lie there.

    python benchmarks/pages.py docs/results/table2.json
    python benchmarks/pages.py PART.json PART.json ... --merge docs/results/table2.json

Prints Markdown. `--merge` first writes the parts of one table, from `sopool reproduce --json`, as one file.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from md_tables import gain, head, line, spread

from sopool.experiments.tables.merge import merge
from sopool.experiments.tables.paper.tables import Figure
from sopool.experiments.tables.reproduction import Measured, Reproduction, load_reproduction

HEADINGS = {"per-fold-max": "per-fold-max (optimistic)", "single-epoch": "single-epoch (less optimistic)"}


def page(found: Reproduction) -> Iterator[str]:
    """One table of `fair` over all data sets, one for each data set, the declared comparisons, the ranks."""
    yield from fair_table(found)
    for dataset in found.datasets:
        yield from dataset_table(found, dataset)
    yield from comparisons(found)
    yield from ranks(found)


def fair_table(found: Reproduction) -> Iterator[str]:
    """Rows by data sets."""
    yield from ("## `fair`, all data sets", "", *head("", *found.datasets))
    for row in found.rows:
        cells = [found.cell(row.name, dataset).measured.get("fair") for dataset in found.datasets]
        if any(cells):
            yield line(row.name, *map(figure, cells))
    yield ""


def dataset_table(found: Reproduction, dataset: str) -> Iterator[str]:
    """Rows by protocols, beside the paper's figures."""
    headings = [HEADINGS.get(name, name) for name in found.protocols]
    yield from (f"## {dataset}", "", *head("", "paper", "its protocol", *headings, "not above"))
    for row in found.rows:
        cell = found.cell(row.name, dataset)
        if cell.measured:
            figures = [figure(cell.measured.get(name)) for name in found.protocols]
            yield line(row.name, figure(cell.paper), row.protocol or "", *figures, ", ".join(cell.not_above))
    yield ""


def comparisons(found: Reproduction) -> Iterator[str]:
    """Those declared beforehand, under each protocol, beside the gain that the paper shows."""
    declared = [one for one in found.comparisons if one.why == "declared"]
    tests = {(one.dataset, one.row, one.against, one.protocol): one.comparison for one in declared}
    yield from ("## Second order against Sum/Avg, on equal terms", "")
    yield from head("data set", "pooling", "paper's gain", *found.protocols)
    for dataset, row, against in dict.fromkeys(key[:3] for key in tests):
        made = [tests.get((dataset, row, against, name)) for name in found.protocols]
        gains = ["" if test is None else f"{gain(test)}, {test.p:.2f}" for test in made]
        papers = [found.cell(name, dataset).paper for name in (row, against)]
        claimed = f"{100 * (papers[0].mean - papers[1].mean):+.1f}" if all(papers) else ""
        yield line(dataset, row, claimed, *gains)
    yield ""


def ranks(found: Reproduction) -> Iterator[str]:
    """The mean rank of each row over the data sets."""
    yield from ("## Mean rank over the data sets", "", *head("", *found.protocols))
    every = {one.protocol: one.ranks for one in found.across}
    for name in dict.fromkeys(name for ranked in every.values() for name in ranked):
        yield line(name, *(f"{every[protocol][name]:.1f}" for protocol in found.protocols))
    yield line("Friedman's p", *(f"{one.friedman:.2f}" for one in found.across if one.friedman is not None))


def figure(found: Figure | Measured | None) -> str:
    """Per cent."""
    return "" if found is None else spread(found.mean, found.std or 0.0)


def read(paths: Sequence[Path]) -> Reproduction:
    """The parts of one table as one."""
    tables = merge([load_reproduction(path) for path in paths])
    if len(tables) != 1:
        raise SystemExit(f"These are {len(tables)} tables, or one trained in {len(tables)} ways: give parts of one.")
    return tables[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", type=Path, nargs="+")
    parser.add_argument("--merge", type=Path, help="write the parts as one file")
    args = parser.parse_args()
    found = read(args.parts)
    if args.merge:
        args.merge.write_text(json.dumps(found.to_json(), indent=1) + "\n")
    print("\n".join(page(found)))


if __name__ == "__main__":
    main()
