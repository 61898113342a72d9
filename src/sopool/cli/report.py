"""``sopool report``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import Progress

from sopool.cli.loading import stored_files
from sopool.cli.options import MetricsOption, RootOption
from sopool.cli.output import check_target, error_console, format_of, is_stdout, output_console, write_target
from sopool.cli.training import shown_metrics
from sopool.errors import DataError, SettingError

Format = Literal["html", "md", "tex", "csv"]


def report(
    runs: Annotated[Path, typer.Argument(metavar="RUNS", help="Folder in which the runs are stored.")] = Path("runs"),
    target: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is standard output.")
    ] = Path("report.html"),
    kind: Annotated[
        Format | None,
        typer.Option("--format", help="Output format: a web page, or tables for a paper.", show_default="by file name"),
    ] = None,
    reference: Annotated[
        str, typer.Option(metavar="POOL", help="Pooling that the others are compared with.")
    ] = "sum-avg",
    root: RootOption = None,
    metrics: MetricsOption = None,
) -> None:
    """Write a report of all stored runs: a web page that works offline, or tables for a paper."""
    from sopool.report.page.render import check_page
    from sopool.report.write import FORMATS
    from sopool.training.runs.store import RunStore

    check_target(target, *stored_files(runs, target))
    shown = shown_metrics(metrics)
    to_stdout = is_stdout(target)
    form = kind or format_of(target, *FORMATS)
    if to_stdout and form == "html":
        raise SettingError(
            "an HTML page cannot be written to standard output. Use -o FILE, or --format md, tex or csv."
        )
    if not runs.is_dir():
        raise DataError(
            "this folder of runs does not exist. Give the folder in which sopool evaluate stored its runs.", runs
        )
    if form == "html":
        check_page("plotly")
    from sopool.experiments.summary import summarise

    with _bar() as progress:
        summary = summarise(RunStore(runs), root, reference, progress)
    text = FORMATS[form](summary, shown)
    write_target(target, text)
    if to_stdout:
        return
    count = len(summary.entries)
    what = f"{summary.runs:,} runs of {count:,} experiment{'s' * (count != 1)}"
    said = f"Wrote a report of {what} to {target} ({len(text) / 1e6:.1f} MB)."
    output_console().print(said)


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on the error stream, if that is a terminal, while experiments are read."""
    console = error_console()
    if not console.is_terminal:  # a disabled bar of Rich 13.0 still prints an empty line
        yield lambda done, total: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("reading experiments")
        yield lambda done, total: bar.update(task, completed=done, total=total)
