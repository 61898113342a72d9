"""How training gets on: a bar in a terminal, a line now and then elsewhere; and signals that ask it to stop."""

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
"""Reports that the shown accuracy is an average of."""
MARKS = 200
"""Reports that the time left is estimated from, once they span this many seconds: workers report at the same time."""
SPAN = 2.0
STOPPING = b"\nStopping at the end of this epoch, to go on from there later. Once more to stop at once.\n"


class Tally:
    """What is done of the model-epochs and runs of an evaluation, or of whatever else ``unit`` names.

    Only what was trained here tells how long the rest takes: runs that were found in the store count as done, no more.
    """

    def __init__(self, total: int, runs: int, clock: Callable[[], float] = time.monotonic, unit: str = "runs") -> None:
        self.total = total
        self.runs = runs
        self.clock = clock
        self.unit = unit
        self.done = self.trained = self.finished = 0
        self.start = clock()
        self.where = ""
        self._recent: deque[tuple[int, float]] = deque(maxlen=REPORTS)
        self._marks: deque[tuple[float, int]] = deque(maxlen=MARKS)

    def add(self, progress: "TrainingProgress") -> None:
        """Count a report of the trainer."""
        epochs = progress.models * progress.epochs
        self.done += epochs
        self.finished += progress.finished
        self.where = progress.where or self.where
        if progress.accuracy is not None:
            self.trained += epochs
            self._recent.append((progress.models, progress.accuracy))
            self._marks.append((self.clock(), self.trained))

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.start

    @property
    def percent(self) -> int:
        """Rounded down: 100 means all."""
        return 100 * self.done // max(1, self.total)

    @property
    def accuracy(self) -> float | None:
        """Of the graphs that are looked at, in the last reports; None before the first."""
        models = sum(count for count, _ in self._recent)
        return sum(count * accuracy for count, accuracy in self._recent) / models if models else None

    @property
    def left(self) -> float | None:
        """Seconds to go, at the speed of late; None before it is known."""
        (start, before), (end, now) = (self._marks[0], self._marks[-1]) if self._marks else ((0.0, 0), (0.0, 0))
        if end - start < SPAN:
            return None
        return (self.total - self.done) * (end - start) / (now - before)

    def facts(self) -> list[str]:
        """In words, what is known of: runs, accuracy, time left, who is at work."""
        facts = [f"{self.finished:,}/{self.runs:,} {self.unit}"]
        if self.accuracy is not None:
            facts.append(f"accuracy {100 * self.accuracy:.1f} %")
        if self.left is not None:
            facts.append(f"{timedelta(seconds=round(self.left))} left")
        if self.where:
            facts.append(self.where)
        return facts


@contextmanager
def training_progress(tally: Tally) -> Iterator["Report"]:
    """Something to report to, which counts and shows it on the error stream."""
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
    """One bar over all model-epochs, gone at the end."""

    def __init__(self, console: SafeConsole) -> None:
        facts = TextColumn("{task.fields[facts]}", markup=False)
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), facts)
        self._bar = RichProgress(*columns, console=console, transient=True, expand=True, refresh_per_second=4)
        self._task = self._bar.add_task("training", facts="")
        self._bar.start()

    def show(self, tally: Tally) -> None:
        """What stands there from the next refresh on."""
        facts = "  ".join([f"{tally.percent} %", *tally.facts()])
        self._bar.update(self._task, total=tally.total, completed=tally.done, facts=facts)

    def close(self) -> None:
        """Take it away."""
        self._bar.stop()


class Lines:
    """A line at every tenth of the way; in between at most one in 10 s, and in long runs ever fewer."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._tenths = 0
        self._when = 0.0

    def show(self, tally: Tally) -> None:
        """Print a line, if one is due."""
        if tally.accuracy is None:
            return  # Not before training has begun: what is found in the store passes in a moment.
        # The last tenth is over when the last run is saved.
        tenths = min(tally.percent // 10, 9 + (tally.finished >= tally.runs))
        now = tally.elapsed
        if tenths > self._tenths or now - self._when >= max(10.0, now / 50):
            self._tenths = tenths
            self._when = now
            epochs = f"{tally.done:,}/{tally.total:,} model-epochs"
            self._write(f"{tally.percent} %: {', '.join([epochs, *tally.facts()])}")

    def close(self) -> None:
        """Nothing to take away."""


class Interruption:
    """Calling it tells whether to stop: true from the first signal on. The second one is a ``KeyboardInterrupt``."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """As shells have it: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
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
            os.write(2, STOPPING)  # straight: the streams of Python may be in the middle of a write
