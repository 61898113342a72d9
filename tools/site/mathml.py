"""Convert the formulas of the documentation to MathML, which browsers render without scripts.

MkDocs calls it for every page. Arithmatex has found the formulas and marked them with its class.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
PRIME = re.compile(r"<msup><mi>(\w)</mi><mi>&#x02032;</mi></msup>")


def on_page_content(content: str, **_: Any) -> str:
    """Return the page with its formulas as MathML."""
    return FORMULA.sub(_draw, content)


def _draw(found: re.Match[str]) -> str:
    tag, bracket, latex = found.groups()
    display = "inline" if bracket == "(" else "block"
    drawn = convert(html.unescape(latex).strip(), display=display)
    drawn = PRIME.sub(r"<mrow><mi>\1</mi><mo>&#x02032;</mo></mrow>", drawn)  # browsers raise the prime themselves
    return f'<{tag} class="formula">{drawn}</{tag}>'
