"""Typer classes and helpers of all commands: escaped error messages, checked lists, help with examples."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from sopool._runtime.visible import on_one_line
from sopool.cli.config_file import config_mistake, from_config, named_in_config
from sopool.cli.options import LIST, with_flags
from sopool.errors import UserError

EXAMPLES = {
    "demo": ["sopool demo"],
    "datasets": ["sopool datasets", "sopool datasets --root ~/graphs --json"],
    "inspect": ["sopool inspect MUTAG", "sopool inspect molecules.csv --label-column toxic"],
    "pools": ["sopool pools", "sopool pools --channels 64"],
    "systems": ["sopool systems", "sopool systems --json"],
    "fit": [
        "sopool fit MUTAG -o mutag.sopool",
        "sopool fit molecules.csv --label-column toxic --class-weight balanced -o toxic.sopool",
        "sopool fit molecules.csv --target-columns mass,solubility -o numbers.sopool",
        "sopool fit molecules.csv --features all --descriptors rdkit2d -o features.sopool",
        "sopool fit MUTAG --system dgcnn -o dgcnn.sopool",
    ],
    "predict": [
        "sopool predict toxic.sopool new.csv -o predictions.csv",
        "cat graphs.jsonl | sopool predict model.sopool - --format jsonl",
    ],
    "explain": [
        "sopool explain mutag.sopool MUTAG --graph 7 -o page.html",
        "sopool explain numbers.sopool molecules.csv --graph 12 --target mass --format json -o -",
    ],
    "show": ["sopool show toxic.sopool", "sopool show toxic.sopool --card toxic.md"],
    "export": ["sopool export toxic.sopool -o toxic.onnx"],
    "config": ["sopool config toxic.sopool -o fit.toml"],
    "evaluate": [
        "sopool evaluate MUTAG --pool sopool-bimap,sum-avg --protocol fair,single-epoch",
        "sopool evaluate NCI1 --pool sopool-bimap,sum-avg --preset best",
        "sopool evaluate PTC --system wl,histogram,sum-avg,gcn+sopool-bimap",
        "sopool evaluate PROTEINS --pool sopool-m-attn,diffpool --blocks 3 --hidden 16,32 -o result.json",
    ],
    "reproduce": [
        "sopool reproduce table2 --dry-run",
        "sopool reproduce table2 --datasets MUTAG,PTC --pools sum-avg,sopool-bimap",
    ],
    "controls": ["sopool controls MUTAG", "sopool controls NCI1 --controls wl,size --json"],
    "report": ["sopool report runs -o report.html", "sopool report runs -o tables.tex"],
    "runs": ["sopool runs", "sopool runs --runs elsewhere --all"],
    "runs list": ["sopool runs list --all"],
    "runs compare": ["sopool runs compare 3fa9 77b2"],
    "runs clean": ["sopool runs clean --runs elsewhere"],
    "runs remove": ["sopool runs remove 3fa9 77b2"],
}
START = [
    "sopool demo",
    "sopool fit molecules.csv --label-column toxic -o toxic.sopool",
    "sopool evaluate MUTAG --pool sopool-bimap,sum-avg --protocol fair",
]
"""The examples in the help of ``sopool`` itself."""


class UsageMistake(typer.BadParameter):
    """A usage error whose message is safe to print."""

    def format_message(self) -> str:
        """Return the message unchanged; it was formatted by the original error."""
        return self.message


class SafeGroup(TyperGroup):
    """A command group whose usage errors, which Typer prints, are escaped."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; the help shows no type for flags."""
        return _flags_without_type(super().get_params(ctx))

    def make_context(self, *given: Any, **named: Any) -> Any:
        """Parse the options of the group."""
        with _safe_mistakes():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        """Parse the options of a command and run it."""
        with _safe_mistakes():
            return super().invoke(ctx)


@contextmanager
def _safe_mistakes() -> Iterator[None]:
    """Escape control characters in usage errors; Typer has no public base class for them."""
    try:
        yield
    except Exception as error:
        said: str = error.format_message() if hasattr(error, "format_message") else ""
        if on_one_line(said) == said.replace("\n", r"\n"):
            raise
        mistake = UsageMistake(on_one_line(said), ctx=getattr(error, "ctx", None))
        mistake.exit_code = getattr(error, "exit_code", mistake.exit_code)
        raise mistake from error


class Command(TyperCommand):
    """A command that rejects a list option given twice; of other options, the last value counts."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; the help shows no type for flags."""
        return _flags_without_type(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments after checking how often each option is given."""
        if not ctx.resilient_parsing:
            order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
            for option, times in Counter(order).items():
                if times > 1 and option.metavar == LIST:
                    why = f"given {times} times. Give it once, with a comma-separated list."
                    raise typer.BadParameter(why, ctx=ctx, param=option)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if error.param is None or not from_config(ctx, error.param):
                raise
            raise config_mistake(ctx, error.param, error.message) from error

    def invoke(self, ctx: Any) -> Any:
        """Run the command; errors about values of a config file name the file and the key."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            error.args = (named_in_config(ctx, with_flags(str(error))), *error.args[1:])
            raise


def _flags_without_type(params: list[Any]) -> list[Any]:
    """Give flags an empty metavar; newer versions of Typer show ``<bool>``, as if a flag took a value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


def epilog(lines: list[str]) -> str:
    """Return the examples as the last paragraph of a help text."""
    return "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", *lines])


def prose(command: Callable[..., None]) -> str:
    """Return the docstring of a command with each paragraph on one line; the terminal wraps it."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
