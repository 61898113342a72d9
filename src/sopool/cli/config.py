"""``sopool config``."""

from pathlib import Path
from typing import Annotated

import typer

from sopool.cli.options import ModelArgument
from sopool.cli.output import check_target, write_target
from sopool.errors import DataError


def config(
    model: ModelArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is standard output.")
    ] = Path("-"),
) -> None:
    """Write a config file that repeats the sopool fit by which a model was trained."""
    from sopool.estimator import load_model

    check_target(output, model)
    found = load_model(model, "cpu").about_.get("config")
    if not isinstance(found, str):
        raise DataError("this model does not say by which command it was trained: sopool fit did not write it.", model)
    write_target(output, found)
