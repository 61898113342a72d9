"""Handle Ctrl-C, SIGTERM and SIGHUP while a model trains."""

import os
import signal
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from sopool._runtime.signals import exit_code, heeded, kill_workers, leave_lost_terminal

STOPPING = b"\nStopping at the end of this epoch, to go on from there later. Once more to stop at once.\n"


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
        """Whether a signal was heard."""
        return self.signal is not None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        leave_lost_terminal()
        if self.signal is not None:
            kill_workers()
            raise KeyboardInterrupt
        self.signal = number
        with suppress(OSError):
            os.write(2, STOPPING)  # straight: the streams of Python may be in the middle of a write
