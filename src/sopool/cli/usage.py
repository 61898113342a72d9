"""Mistakes in the command line, which name what was typed: a file name may be among it, and hold anything."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from sopool._runtime.visible import on_one_line


class UsageMistake(typer.BadParameter):
    """A mistake in the command line, in words that are safe to print."""

    def format_message(self) -> str:
        """Return the words as they are: they were made by the mistake that this one stands for."""
        return self.message


class SafeGroup(TyperGroup):
    """A group of commands whose mistakes are safe to print. Typer prints them by itself."""

    def make_context(self, *given: Any, **named: Any) -> Any:
        """Read the options of the group."""
        with _safe_mistakes():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        """Read the options of a command, and run it."""
        with _safe_mistakes():
            return super().invoke(ctx)


@contextmanager
def _safe_mistakes() -> Iterator[None]:
    """Replace a mistake whose words could drive the terminal; Typer has no public name for what all of them are."""
    try:
        yield
    except Exception as error:
        said: str = error.format_message() if hasattr(error, "format_message") else ""
        if on_one_line(said) == said.replace("\n", r"\n"):
            raise
        mistake = UsageMistake(on_one_line(said), ctx=getattr(error, "ctx", None))
        mistake.exit_code = getattr(error, "exit_code", mistake.exit_code)
        raise mistake from error
