"""The command line: thin, over plain functions. A module for each command, which imports what it needs when called.

So ``sopool --help`` and completion in the shell wait for neither PyTorch nor anything built on it.
"""

import gc
import sys
import warnings
from typing import Annotated

import typer

from sopool import __version__
from sopool._files.atomic import why
from sopool.cli import (
    controls,
    datasets,
    demo,
    evaluate,
    explain,
    fit,
    inspect,
    pools,
    predict,
    report,
    reproduce,
    runs,
)
from sopool.cli.output import print_data, print_message, show_warning
from sopool.cli.typer_app import EXAMPLES, START, Command, SafeGroup, epilog, prose
from sopool.errors import UserError

COMMANDS = (
    demo.demo,
    datasets.datasets,
    inspect.inspect,
    pools.pools,
    fit.fit,
    predict.predict,
    explain.explain,
    evaluate.evaluate,
    reproduce.reproduce,
    controls.controls,
    report.report,
)

BETWEEN_COLLECTIONS = 10_000
"""New objects from one search for garbage to the next."""

app = typer.Typer(
    cls=SafeGroup,
    help="Second-order pooling for graph neural networks.",
    epilog=epilog(START),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    app.command(cls=Command, help=prose(command), epilog=epilog(EXAMPLES[command.__name__]))(command)
app.add_typer(runs.app, name="runs")


def _version(wanted: bool) -> None:
    if wanted:
        print_data(f"sopool {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. A user's mistake gives a message and exit code 2, never a traceback."""
    warnings.showwarning = show_warning
    # Libraries make some hundred thousand objects that stay. To look through them for garbage time and again, as they
    # come, took half a second of each start.
    gc.set_threshold(BETWEEN_COLLECTIONS)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where it can be told what went wrong
    except UnicodeEncodeError as error:
        letters = ascii(error.object[error.start : error.end][:10])
        print_message(
            "error", f"{letters} cannot be printed in {error.encoding}. Set PYTHONIOENCODING=utf-8, or write to a file."
        )
        sys.exit(2)
    except UserError as error:
        print_message("error", str(error))
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        from sopool._runtime.out_of_memory import shortage

        short = shortage(error)
        if short is None:
            raise
        print_message("error", f"there is not enough memory: {short}. Give fewer or smaller graphs.")
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        print_message("error", why(error))
        _give_up_stdout()
        sys.exit(2)


def _give_up_stdout() -> None:
    """What could not be written would be tried once more at the end, with a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = None
