"""What a model is, as text for the terminal and as a card in Markdown."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sopool._runtime.visible import on_one_line
from sopool.report.grid import Cell, Grid, word_cells
from sopool.report.grids.estimates import BASELINES, SHOWN
from sopool.report.papers import grid_markdown, markdown_text
from sopool.report.scores import score_cell, score_text, title_of

MOST = 20
"""The largest number of classes, targets and columns that are listed."""
TASKS = {
    "classification": "one of several classes",
    "multi-label": "several labels that are 0 or 1",
    "regression": "numbers",
}
MEANINGS = (
    "The uncertainty of a prediction is the disagreement of the networks, not its error.",
    "A label, category or degree that no training graph has counts as unknown; predictions of such graphs are less "
    "reliable.",
    "The file holds a hash of each training graph, which tells whether a given graph was among them.",
)
"""What holds for every model."""


class Section(NamedTuple):
    """A part of what is shown: facts with their names."""

    title: str
    facts: list[tuple[str, str]]


def sections(facts: dict[str, Any]) -> list[Section]:
    """Return what is shown of the facts of :func:`~sopool.estimator.model_facts.model_facts`."""
    found = [
        Section("What it predicts", _predicted(facts)),
        Section("Training data", _data(facts)),
        Section("Features", _features(facts["features"])),
        Section("Networks", _networks(facts["network"])),
        Section("Settings", _settings(facts)),
        Section("Estimate", _estimate(facts)),
        Section("Versions", [(name, _value(value)) for name, value in facts["environment"].items()]),
    ]
    return [section for section in found if section.facts]


def model_table(name: str, facts: dict[str, Any]) -> RenderableType:
    """Return what a model is for the terminal."""
    parts: list[RenderableType] = [Text(on_one_line(name), style="bold underline")]
    for section in sections(facts):
        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for label, value in section.facts:
            table.add_row(Text(label), Text(on_one_line(value.replace("±", "+-"))))
        parts += [Text(f"\n{section.title}", style="bold"), table]
    return Group(*parts)


def model_card(name: str, facts: dict[str, Any]) -> str:
    """Return a model card in GitHub-flavored Markdown.

    Args:
        name: The name of the model's file.
        facts: What :func:`~sopool.estimator.model_facts.model_facts` returns.
    """
    lines = [
        f"# {markdown_text(name)}",
        "",
        f"This model of sopool predicts {TASKS[facts['task']]} for each graph.",
        "",
    ]
    for section in sections(facts):
        rows = [word_cells((label, value)) for label, value in section.facts]
        lines += [grid_markdown(Grid(section.title, ["", ""], rows, words=2)).rstrip(), ""]
    estimate = facts["estimate"]
    meanings = [f"The estimate is for {estimate['new_graphs']}." if estimate else "Its accuracy was not estimated."]
    lines += ["## Meaning", "", *(f"- {markdown_text(one)}" for one in (*meanings, *MEANINGS)), ""]
    return "\n".join(lines)


def _predicted(facts: dict[str, Any]) -> list[tuple[str, str]]:
    kind = "classes" if "classes" in facts else "targets"
    named = facts[kind]
    total = sum(one["graphs"] or 0 for one in named)
    items = []
    for one in named[:MOST]:
        count = one["graphs"]
        share = f" ({100 * count / total:.1f} %)" if kind == "classes" and count is not None and total else ""
        items.append(f"{one['name']}" if count is None else f"{one['name']}: {count:,}{share}")
    task = ("task", f"{facts['task']}, {TASKS[facts['task']]}")
    chosen = ("chosen by", title_of(facts["metric"]))
    return [task, (kind, _listed(items, len(named))), chosen]


def _data(facts: dict[str, Any]) -> list[tuple[str, str]]:
    data = facts["data"]
    columns = facts["columns"]
    named = [("SMILES column", columns["smiles"]), ("label column", columns["label"])]
    named.append(("target columns", _listed(columns["targets"], len(columns["targets"]))))
    return [
        ("name", data["name"]),
        ("graphs", f"{data['graphs']:,}"),
        ("nodes", f"{data['nodes']:,}"),
        *((label, name) for label, name in named if name),
    ]


def _features(features: dict[str, Sequence[str]]) -> list[tuple[str, str]]:
    numbers = features["graphs"]
    return [
        ("nodes", ", ".join(features["nodes"])),
        ("edges", ", ".join(features["edges"]) or "nothing but their ends"),
        *([("graphs", f"{len(numbers):,} numbers: {_listed(numbers, len(numbers))}")] if numbers else []),
    ]


def _networks(network: dict[str, Any]) -> list[tuple[str, str]]:
    temperature = network["temperature"]
    calibrated = (
        [] if temperature is None else [("calibration", f"probabilities have the temperature {temperature:.3g}")]
    )
    return [
        *_architecture(network),
        ("ensemble", f"{network['networks']:,} with {network['parameters']:,} parameters each"),
        *calibrated,
    ]


def _architecture(network: dict[str, Any]) -> list[tuple[str, str]]:
    if network["system"] is not None:
        return [("system", f"{network['system']}{_options(network['system_options'])}, width {network['hidden']}")]
    blocks = f", {network['blocks']} blocks" * bool(network["blocks"])
    return [
        ("layers", f"{network['layers']} of {network['gnn']}, width {network['hidden']}{blocks}"),
        ("pooling", f"{network['pool']}{_options(network['pool_options'])}"),
    ]


def _options(options: dict[str, Any]) -> str:
    return f" ({', '.join(f'{name}={_value(value)}' for name, value in options.items())})" if options else ""


def _settings(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the settings, and the values that a search chose some of them from."""
    settings = [(name.replace("_", " "), _value(value)) for name, value in facts["settings"].items()]
    found = "; ".join(f"{name.replace('_', ' ')} {_value(values)}" for name, values in facts["searched"].items())
    return [*settings, *([("selected from", found)] if found else [])]


def _estimate(facts: dict[str, Any]) -> list[tuple[str, str]]:
    found = facts["estimate"]
    if found is None:
        return [("scores", "not estimated")]
    folds = found["folds"]
    how = f"{folds}-fold cross-validation" if folds > 1 else "one test set"
    usual = dict.fromkeys((facts["metric"], *SHOWN[facts["task"]]))
    scores = [(title_of(name), _score(name, found["scores"][name], folds)) for name in usual if name in found["scores"]]
    alike = found["baseline"].get(facts["metric"])
    baseline = [] if alike is None else [("baseline", score_text(facts["metric"], alike) + _baseline(facts))]
    return [("by", how), ("split", found["split"]), ("for", found["new_graphs"]), *scores, *baseline]


def _baseline(facts: dict[str, Any]) -> str:
    return f" {title_of(facts['metric'])}, always predicting {BASELINES[facts['task']]}"


def _score(name: str, found: dict[str, Any], folds: int) -> str:
    if found["mean"] is None:
        return "-"
    cell: Cell = score_cell(name, found["mean"], found["std"] if folds > 1 else None)
    unit = score_text(name, found["mean"]).removeprefix(score_cell(name, found["mean"]).text)
    return f"{cell.text}{unit}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _listed(items: Sequence[str], count: int) -> str:
    return ", ".join(items[:MOST]) + (f" and {count - MOST:,} more" if count > MOST else "")
