"""Convert the reStructuredText markup in docstrings, such as ``:class:`` and ``.. math::``, to Markdown.

This is an extension of Griffe, which reads the source for the reference pages.
"""

import re
from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any

import griffe

MATH_BLOCK = re.compile(r"^( *)\.\. math::(.*\n(?:(?:\1 +\S.*)?(?:\n|$))*)", re.MULTILINE)
MATH = re.compile(r":math:`([^`]+)`")
SUBSCRIPT = re.compile(r"\\ :sub:`([^`]+)`")
LINK = re.compile(r'`"?([^`<]*?)"?\s+<([^`>]+)>`_+')
ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`(~?)([\w.]+)`")


class Roles(griffe.Extension):
    """Rewrites every docstring once the whole package is read, so that names can be resolved."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value, obj)


def markdown(text: str, scope: griffe.Object) -> str:
    """Return a docstring as Markdown; names are resolved in ``scope``."""
    text = MATH_BLOCK.sub(_block, text)
    text = MATH.sub(lambda math: f"${' '.join(math[1].split())}$", text)
    text = SUBSCRIPT.sub(r"<sub>\1</sub>", text)
    text = LINK.sub(lambda link: f"[{' '.join(link[1].split())}]({link[2]})", text)
    return ROLE.sub(_reference(scope), text)


def _block(found: re.Match[str]) -> str:
    return indent(f"$$\n{dedent(found[2]).strip()}\n$$\n\n", found[1])


def _reference(scope: griffe.Object) -> Callable[[re.Match[str]], str]:
    """Return a function that links a name to the reference if it is documented there."""

    def refer(found: re.Match[str]) -> str:
        short, name = found.groups()
        shown = name.rpartition(".")[2] if short else name
        try:
            path = scope.resolve(name)
        except griffe.NameResolutionError:
            path = name
        return f'<autoref optional identifier="{path}"><code>{shown}</code></autoref>'

    return refer
