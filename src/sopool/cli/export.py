"""``sopool export``."""

from pathlib import Path
from typing import Annotated

import typer

from sopool.cli.options import ModelArgument
from sopool.cli.output import check_file, print_message
from sopool.errors import SettingError


def export(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The ONNX file to write.")] = Path(
        "model.onnx"
    ),
) -> None:
    """Write a saved model as an ONNX file, to predict without Python, PyTorch or sopool.

    The file has all networks of the ensemble and gives the probability of each class or label, or the predicted
    numbers, and the uncertainty. Its metadata describe the inputs, such as the numbers of the node labels. Predictions
    equal those of sopool predict up to rounding. Models with eigenpool, and systems (fit --system), cannot be
    exported.
    """
    from sopool.estimator import load_model
    from sopool.estimator.export import check_exportable, description

    check_file(output, model)
    if output.suffix.lower() != ".onnx":
        raise SettingError("the name of the file to write must end in .onnx.", output)
    check_exportable()
    estimator = load_model(model, "cpu")
    estimator.export(output)
    networks = estimator.ensemble_.model.models
    size = output.stat().st_size / 1e6
    print_message(
        "note",
        f"exported {networks} network{'s' * (networks > 1)} to {output} ({size:,.1f} MB). Run the file with "
        f"ONNX Runtime; the metadata key sopool describes its inputs: {', '.join(description(estimator)['inputs'])}.",
    )
