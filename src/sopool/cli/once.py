"""Lists that are given once, ``--pool a,b``: of ``--pool a --pool b`` only the last would be heard, without a word."""

from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand

from sopool.cli.options import LIST


class Command(TyperCommand):
    """A command that refuses a list which is given twice; of other options the last counts, as usual."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As ever, after a look at how often each option is there."""
        if not ctx.resilient_parsing:
            order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
            for option, times in Counter(order).items():
                if times > 1 and option.metavar == LIST:
                    why = f"given {times} times. Give it once, as a list with commas."
                    raise typer.BadParameter(why, ctx=ctx, param=option)
        return super().parse_args(ctx, args)
