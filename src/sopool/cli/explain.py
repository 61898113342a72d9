"""``sopool explain``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sopool.cli.loading import load_model_for, own_columns, source_files
from sopool.cli.options import (
    DATA,
    MAX_ATOMS,
    IdColumnOption,
    MaxAtomsOption,
    ModelArgument,
    RootOption,
    SmilesColumnOption,
    StreamArgument,
    TruthColumnsOption,
)
from sopool.cli.output import STDIN, check_target, format_of, is_stdout, json_text, print_message, write_target
from sopool.errors import SettingError, check_name

if TYPE_CHECKING:
    from sopool.data.sources.find_graph import FoundGraph
    from sopool.estimator import GraphEstimator
    from sopool.models.explain.explanation import AnyExplanation

APPROXIMATE = ("trace", "sqrt", "norm", "log")
"""The normalizations with which an explanation is gradient x input."""
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
    target: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Target to explain, if the model predicts several.", show_default="the first"
        ),
    ] = None,
    form: Annotated[
        Literal["html", "json"] | None,
        typer.Option("--format", help="Output format: a web page or JSON.", show_default="by file name, else html"),
    ] = None,
    pairs: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of feature pairs to list for each class or target.")
    ] = 12,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="Device to compute on: auto, cpu, cuda or, e.g., cuda:1.")
    ] = "auto",
    smiles_column: SmilesColumnOption = None,
    id_column: IdColumnOption = None,
    label_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Column or property that holds the true labels.", rich_help_panel=DATA),
    ] = None,
    target_columns: TruthColumnsOption = None,
    max_atoms: MaxAtomsOption = MAX_ATOMS,
    root: RootOption = None,
) -> None:
    """Explain a prediction: the contribution of each node and the most important feature pairs.

    For sum, mean, attention and second-order poolings, the contributions are the exact terms of the score of a class,
    of the log-odds of a label, or of a predicted number, in its own unit. For other poolings, with normalize=trace,
    sqrt, norm or log, and for systems (fit --system), they are gradient x input, and the page says so. With
    sopool-pairs, the pairs of nodes that contribute most are drawn and listed too; it has normalize=norm unless the
    model was trained with, e.g., --pool-options normalize=size, with which they are exact.
    """
    from sopool._runtime.out_of_memory import advise
    from sopool.data.formats.rows import row_options
    from sopool.data.sources.find_graph import find_graph, has_id, row_number
    from sopool.models.explain.explanation import TargetExplanation
    from sopool.report.explanation.words import prediction_words
    from sopool.report.page.render import check_page

    check_target(output, model, *source_files(source, root))
    chosen = form or format_of(output, "html", "json")
    if chosen == "html":
        check_page()
    estimator = load_model_for(model, source, device)
    if target is not None:
        if not estimator.target_names_:
            raise SettingError(f"--target {target}: the model predicts one class, which is explained without it.")
        check_name("target", target, estimator.target_names_)
    columns = own_columns(estimator, target_columns)
    options = row_options(
        smiles_column, label_column, columns, max_atoms, id_column=id_column, training=estimator.columns_
    )
    found = find_graph(source, graph, estimator.ensemble_.fields, options, root)
    if row_number(graph) is not None and found.id is not None and str(found.id) not in (graph, str(found.row)):
        known = source != STDIN and has_id(source, graph, found.row + AHEAD, options)
        other = f" Use --graph id:{graph} for the graph with the id {graph}." if known else ""
        print_message("note", f"using row {found.row}, which has the id {found.id}.{other}")
    with advise("to explain it", lambda: f"The graph has {found.graph.num_nodes:,} nodes: explain a smaller one."):
        (explanation,) = estimator.explain(found.graph, pairs)
    if target is not None and isinstance(explanation, TargetExplanation):
        explanation = explanation.of(target)
    write = _page if chosen == "html" else _figures
    write_target(output, write(explanation, found, estimator, model))
    if is_stdout(output):
        return
    kind = "exact" if explanation.exact else "approximate"
    why = "" if explanation.exact else _why_approximate(estimator)
    print_message("note", f"{prediction_words(explanation)}. The {kind} explanation is in {output}.{why}")


def _why_approximate(estimator: "GraphEstimator") -> str:
    """Say what makes an explanation approximate, if another normalization would make it exact."""
    normalize = estimator.config_.effective_options.get("normalize")
    if estimator.config_.blocks or normalize not in APPROXIMATE:
        return ""
    return (
        f" It is approximate because of normalize={normalize}; models that are trained with --pool-options "
        "normalize=size have exact ones."
    )


def _name(found: "FoundGraph") -> str:
    return f"graph {found.row}{'' if found.id is None else f' ({found.id})'} of {found.graph.name}"


def _page(explanation: "AnyExplanation", found: "FoundGraph", estimator: "GraphEstimator", model: Path) -> str:
    from sopool.report.explanation.page import Subject, explanation_page

    config = estimator.config_
    network = config.system or f"{config.gnn} with {config.pool_name}"
    words = f"The model is {model.name}: {network}."
    return explanation_page(explanation, Subject(found.graph, _name(found), _true(explanation, found), words))


def _true(explanation: "AnyExplanation", found: "FoundGraph") -> str | None:
    """Return the true class, or the true value of the target that is explained; None if it is not known."""
    from sopool.data.names import reads

    label = found.label
    if isinstance(label, list):
        label = label[explanation.chosen] if len(label) == len(explanation.names) else None
    return None if label is None else reads(label)


def _figures(explanation: "AnyExplanation", found: "FoundGraph", estimator: "GraphEstimator", model: Path) -> str:
    facts = {"data": found.graph.name, "row": found.row, "id": found.id, "label": found.label}
    return json_text(facts | {"pool": estimator.config_.pool_name} | explanation.to_json()) + "\n"
