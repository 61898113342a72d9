"""Formulae of the documentation as MathML, which browsers draw by themselves: no script, nothing to fetch.

MkDocs calls it for every page. Arithmatex has found the formulae and left them in elements of its class.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
PRIME = re.compile(r"<msup><mi>(\w)</mi><mi>&#x02032;</mi></msup>")


def on_page_content(content: str, **_: Any) -> str:
    """The page with its formulae drawn."""
    return FORMULA.sub(_draw, content)


def _draw(found: re.Match[str]) -> str:
    tag, bracket, latex = found.groups()
    display = "inline" if bracket == "(" else "block"
    drawn = convert(html.unescape(latex).strip(), display=display)
    drawn = PRIME.sub(r"<mrow><mi>\1</mi><mo>&#x02032;</mo></mrow>", drawn)  # the sign is raised by itself
    return f'<{tag} class="formula">{drawn}</{tag}>'
