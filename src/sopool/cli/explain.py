"""``sopool explain``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sopool.cli.loading import source_files
from sopool.cli.options import (
    DATA,
    MAX_ATOMS,
    MaxAtomsOption,
    ModelArgument,
    RootOption,
    SmilesColumnOption,
    StreamArgument,
)
from sopool.cli.output import STDIN, check_target, format_of, is_stdout, json_text, print_message, write_target

if TYPE_CHECKING:
    from sopool.data.sources.find_graph import FoundGraph
    from sopool.estimator import GraphClassifier
    from sopool.models.explain.explanation import Explanation

AHEAD = 1000
"""The number of further rows that are searched for an id equal to the row number; reading all may take long."""


def explain(
    model: ModelArgument,
    source: StreamArgument,
    graph: Annotated[
        str,
        typer.Option(
            "--graph",
            "-g",
            metavar="ROW",
            help="Row of the graph, as printed by sopool predict, or its id; id:7 is always the id.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="A .html or .json file to write; - is standard output."),
    ] = Path("explanation.html"),
    form: Annotated[
        Literal["html", "json"] | None,
        typer.Option("--format", help="Output format: a web page or JSON.", show_default="by file name, else html"),
    ] = None,
    pairs: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of feature pairs to list for each class.")
    ] = 12,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="Device to compute on: auto, cpu, cuda or, e.g., cuda:1.")
    ] = "auto",
    smiles_column: SmilesColumnOption = None,
    label_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Column or property that holds the true labels.", rich_help_panel=DATA),
    ] = None,
    max_atoms: MaxAtomsOption = MAX_ATOMS,
    root: RootOption = None,
) -> None:
    """Explain a prediction: the contribution of each node and the most important feature pairs.

    For sum, mean, attention and second-order poolings, the contributions are the exact terms of the score. For other
    poolings, and with normalize=trace or sqrt, they are gradient x input, and the page says so.
    """
    from sopool._runtime.out_of_memory import advise
    from sopool.data.sources.find_graph import find_graph, has_id, row_number
    from sopool.estimator import GraphClassifier
    from sopool.report.page.render import check_page

    check_target(output, model, *source_files(source, root))
    chosen = form or format_of(output, "html", "json")
    if chosen == "html":
        check_page()
    classifier = GraphClassifier.load(model, device)
    found = find_graph(source, graph, classifier.ensemble_.fields, root, smiles_column, label_column, max_atoms)
    if row_number(graph) is not None and found.id is not None and str(found.id) not in (graph, str(found.row)):
        last = found.row + AHEAD
        known = source != STDIN and has_id(source, graph, smiles_column, label_column, max_atoms, last)
        other = f" Use --graph id:{graph} for the graph with the id {graph}." if known else ""
        print_message("note", f"using row {found.row}, which has the id {found.id}.{other}")
    with advise("to explain it", lambda: f"The graph has {found.graph.num_nodes:,} nodes: explain a smaller one."):
        (explanation,) = classifier.explain(found.graph, pairs)
    write = _page if chosen == "html" else _figures
    write_target(output, write(explanation, found, classifier, model))
    if is_stdout(output):
        return
    kind = "exact" if explanation.exact else "approximate"
    share = 100 * explanation.probabilities[explanation.chosen]
    print_message(
        "note",
        f"predicted class {explanation.prediction} ({share:.1f} %). The {kind} explanation is in {output}.",
    )


def _name(found: "FoundGraph") -> str:
    return f"graph {found.row}{'' if found.id is None else f' ({found.id})'} of {found.graph.name}"


def _page(explanation: "Explanation", found: "FoundGraph", classifier: "GraphClassifier", model: Path) -> str:
    from sopool.report.explanation.page import Subject, explanation_page

    label = None if found.label is None else str(found.label)
    words = f"The model is {model.name}: {classifier.config_.gnn} with {classifier.config_.pool_name}."
    return explanation_page(explanation, Subject(found.graph, _name(found), label, words))


def _figures(explanation: "Explanation", found: "FoundGraph", classifier: "GraphClassifier", model: Path) -> str:
    facts = {"data": found.graph.name, "row": found.row, "id": found.id, "label": found.label}
    return json_text(facts | {"pool": classifier.config_.pool_name} | explanation.to_json()) + "\n"
