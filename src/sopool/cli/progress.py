"""Progress of training, as a bar on a terminal and as lines elsewhere, and signals that stop it."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as RichProgress

from sopool._runtime.signals import exit_code, heeded, kill_workers, leave_lost_terminal
from sopool.cli.output import SafeConsole, error_console, print_message, print_progress

if TYPE_CHECKING:
    from sopool.training.trainer import Report, TrainingProgress

REPORTS = 20
"""The number of reports over which the displayed score is averaged."""
MARKS = 200
"""The number of reports from which the remaining time is estimated."""
SPAN = 2.0
"""The seconds these reports must span: workers may report at the same time."""
STOPPING = b"\nStopping after this epoch; the command can be continued later. Interrupt again to stop now.\n"


class Tally:
    """Count the finished model-epochs and runs of an evaluation.

    ``unit`` names the runs in messages, and ``metric`` the score on graphs held out from training. The remaining time
    is estimated from newly trained epochs only; stored runs just count as done.
    """

    def __init__(
        self,
        total: int,
        runs: int,
        clock: Callable[[], float] = time.monotonic,
        unit: str = "runs",
        metric: str = "accuracy",
    ) -> None:
        self.total = total
        self.runs = runs
        self.clock = clock
        self.unit = unit
        self.metric = metric
        self.done = self.trained = self.finished = 0
        self.start = clock()
        self.where = ""
        self._recent: deque[tuple[int, float]] = deque(maxlen=REPORTS)
        self.graphs = 0
        self._marks: deque[tuple[float, int, int]] = deque(maxlen=MARKS)

    def add(self, progress: "TrainingProgress") -> None:
        """Add a report of the trainer."""
        epochs = progress.models * progress.epochs
        self.done += epochs
        self.finished += progress.finished
        self.where = progress.where or self.where
        if progress.score is not None:
            self.trained += epochs
            self._recent.append((progress.models, progress.score))
            self.graphs += progress.graphs
            self._marks.append((self.clock(), self.trained, self.graphs))

    @property
    def elapsed(self) -> float:
        """The seconds since the start."""
        return self.clock() - self.start

    @property
    def percent(self) -> int:
        """The finished share in percent, rounded down, so that 100 means all."""
        return 100 * self.done // max(1, self.total)

    @property
    def score(self) -> float | None:
        """The mean score on graphs held out from training, in the latest reports; None before the first."""
        models = sum(count for count, _ in self._recent)
        return sum(count * score for count, score in self._recent) / models if models else None

    @property
    def left(self) -> float | None:
        """The remaining seconds at the recent speed; None while it is unknown."""
        seconds, epochs, _ = self._lately
        return None if seconds < SPAN else (self.total - self.done) * seconds / epochs

    @property
    def speed(self) -> float | None:
        """The number of graphs that all models together are trained on per second; None while it is unknown."""
        seconds, _, graphs = self._lately
        return None if seconds < SPAN or not graphs else graphs / seconds

    @property
    def _lately(self) -> tuple[float, int, int]:
        """The seconds, model-epochs and graphs between the first and the last of the latest reports."""
        if not self._marks:
            return 0.0, 0, 0
        (start, *before), (end, *now) = self._marks[0], self._marks[-1]
        return end - start, now[0] - before[0], now[1] - before[1]

    def facts(self) -> list[str]:
        """Return the number of runs and, if known, the score, the remaining time and the current work."""
        from sopool.report.scores import score_text, title_of

        facts = [f"{self.finished:,}/{self.runs:,} {self.unit}"]
        if self.score is not None:
            facts.append(f"held-out {title_of(self.metric)} {score_text(self.metric, self.score)}")
        if self.speed is not None:
            facts.append(f"{self.speed:,.0f} graphs/s")
        if self.left is not None:
            facts.append(f"{timedelta(seconds=round(self.left))} left")
        if self.where:
            facts.append(self.where)
        return facts


@contextmanager
def training_progress(tally: Tally) -> Iterator["Report"]:
    """Yield a function that takes reports and shows the progress on the error stream."""
    console = error_console()
    shown: _Display = Bar(console) if console.is_interactive and sys.stderr.isatty() else Lines(print_progress)

    def report(progress: "TrainingProgress") -> None:
        tally.add(progress)
        for message in progress.stopped:
            print_message("warning", message, console)
        shown.show(tally)

    try:
        yield report
    finally:
        shown.close()


class _Display(Protocol):
    def show(self, tally: Tally) -> None: ...

    def close(self) -> None: ...


class Bar:
    """A progress bar over all model-epochs, which is removed at the end."""

    def __init__(self, console: SafeConsole) -> None:
        facts = TextColumn("{task.fields[facts]}", markup=False)
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), facts)
        self._bar = RichProgress(*columns, console=console, transient=True, expand=True, refresh_per_second=4)
        self._task = self._bar.add_task("training", facts="")
        self._bar.start()

    def show(self, tally: Tally) -> None:
        """Update the bar."""
        facts = "  ".join([f"{tally.percent} %", *tally.facts()])
        self._bar.update(self._task, total=tally.total, completed=tally.done, facts=facts)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


class Lines:
    """A line of progress at every tenth; in between at most one in 10 s, and fewer in long runs."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._tenths = 0
        self._when = 0.0

    def show(self, tally: Tally) -> None:
        """Print a line if one is due."""
        if tally.score is None:
            return  # stored runs are counted in a moment, before training begins
        # The last tenth ends when the last run is saved.
        tenths = min(tally.percent // 10, 9 + (tally.finished >= tally.runs))
        now = tally.elapsed
        if tenths > self._tenths or now - self._when >= max(10.0, now / 50):
            self._tenths = tenths
            self._when = now
            epochs = f"{tally.done:,}/{tally.total:,} model-epochs"
            self._write(f"{tally.percent} %: {', '.join([epochs, *tally.facts()])}")

    def close(self) -> None:
        """Do nothing; lines stay."""


class Interruption:
    """A callable that returns whether a signal asked to stop; a second signal raises ``KeyboardInterrupt``."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """The exit code that shells use: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
        return exit_code(self.signal or signal.SIGINT)

    def __enter__(self) -> "Interruption":
        for number in heeded():
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def __call__(self) -> bool:
        """Return whether a signal was received."""
        return self.signal is not None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        leave_lost_terminal()
        if self.signal is not None:
            kill_workers()
            raise KeyboardInterrupt
        self.signal = number
        with suppress(OSError):
            os.write(2, STOPPING)  # directly, because a Python stream may be in the middle of a write
