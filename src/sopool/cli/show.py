"""``sopool show``."""

from pathlib import Path
from typing import Annotated

import typer

from sopool.cli.options import JsonOption, ModelArgument
from sopool.cli.output import check_file, print_message, print_result, write_target


def show(
    model: ModelArgument,
    card: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a model card to a Markdown file, e.g. model.md.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a model is: what it predicts, its data, features, networks, settings, estimate and versions."""
    from sopool._files.schema import blamed_on
    from sopool.estimator import load_model
    from sopool.estimator.model_facts import model_facts
    from sopool.report.model_card import model_card, model_table

    if card is not None:
        check_file(card, model)
    estimator = load_model(model, "cpu")
    with blamed_on(model):
        facts = model_facts(estimator)
    print_result(as_json, lambda: {"model": model.name, **facts}, lambda: model_table(model.name, facts))
    if card is not None:
        write_target(card, model_card(model.name, facts))
        print_message("note", f"the model card is in {card}.")
