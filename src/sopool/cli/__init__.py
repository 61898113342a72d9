"""The command line, with a module for each command.

A command imports PyTorch and what is built on it only when it runs, so ``sopool --help`` and shell completion are fast.
"""

import gc
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from sopool._runtime.packages import EXTRAS, require

require("the command sopool", *EXTRAS["cli"])

import typer

from sopool import __version__
from sopool._files.atomic import why
from sopool.cli import (
    config,
    controls,
    datasets,
    demo,
    evaluate,
    explain,
    export,
    fit,
    inspect,
    pools,
    predict,
    report,
    reproduce,
    runs,
    show,
    systems,
)
from sopool.cli.config_file import read_config
from sopool.cli.options import with_flags
from sopool.cli.output import print_data, print_message, show_warning
from sopool.cli.typer_app import EXAMPLES, START, Command, SafeGroup, epilog, prose
from sopool.errors import UserError

PREDICT = "Predict properties of graphs"
COMPARE = "Compare poolings"
LIST = "List data sets, poolings and systems"
COMMANDS: dict[Callable[..., None], str | None] = {
    demo.demo: None,
    fit.fit: PREDICT,
    predict.predict: PREDICT,
    explain.explain: PREDICT,
    show.show: PREDICT,
    export.export: PREDICT,
    config.config: PREDICT,
    evaluate.evaluate: COMPARE,
    controls.controls: COMPARE,
    reproduce.reproduce: COMPARE,
    report.report: COMPARE,
    datasets.datasets: LIST,
    inspect.inspect: LIST,
    pools.pools: LIST,
    systems.systems: LIST,
}
"""The commands, each with its heading in the help; those without one come first."""

BETWEEN_COLLECTIONS = 10_000
"""The number of new objects between two garbage collections."""

app = typer.Typer(
    cls=SafeGroup,
    help="Second-order pooling for graph neural networks.",
    epilog=epilog(START),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command, heading in COMMANDS.items():
    examples = epilog(EXAMPLES[command.__name__])
    app.command(cls=Command, help=prose(command), epilog=examples, rich_help_panel=heading)(command)
app.add_typer(runs.app, name="runs", rich_help_panel=COMPARE)


def _version(wanted: bool) -> None:
    if wanted:
        print_data(f"sopool {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    config_file: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="TOML file with options of commands."),
    ] = None,
) -> None:
    if config_file is not None:
        context.default_map = read_config(config_file, context.command)


def main() -> None:
    """Run the command line; a user's mistake prints a message without a traceback and exits with code 2."""
    warnings.showwarning = show_warning
    # Imports create several hundred thousand permanent objects. Frequent garbage collections during the imports cost
    # half a second at each start.
    gc.set_threshold(BETWEEN_COLLECTIONS)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where an error still gets a message
    except UnicodeEncodeError as error:
        letters = ascii(error.object[error.start : error.end][:10])
        print_message(
            "error",
            f"{letters} cannot be printed in {error.encoding}. Set PYTHONIOENCODING=utf-8, or write to a file.",
        )
        sys.exit(2)
    except UserError as error:
        print_message("error", with_flags(str(error)))
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        from sopool._runtime.out_of_memory import shortage

        short = shortage(error)
        if short is None:
            raise
        print_message("error", f"there is not enough memory: {short}. Use fewer or smaller graphs.")
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        print_message("error", why(error))
        _give_up_stdout()
        sys.exit(2)


def _give_up_stdout() -> None:
    """Close standard output so that Python does not try to write again at exit and print a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = None
