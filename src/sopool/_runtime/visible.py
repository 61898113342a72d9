r"""Make text from data safe to print in a terminal.

Class names, ids and file names may contain escape sequences, which would control the terminal, or marks that reorder
the text. Such characters are shown as ``\x1b`` or ``\u202e``; letters of all scripts, accents and emoji are unchanged.
"""

import re

UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except the newline, line and paragraph separators, bidirectional controls, lone surrogates."""
NAMES = {"\t": r"\t", "\r": r"\r"}


def visible(text: str) -> str:
    """Escape all characters that could control a terminal, except newlines."""
    return UNSAFE.sub(_written_out, text)


def on_one_line(text: str) -> str:
    """Escape characters as :func:`visible` does, and newlines as well, so that a name cannot forge a line."""
    return visible(text).replace("\n", r"\n")


def _written_out(found: re.Match[str]) -> str:
    """Return the escape of one character, beyond ASCII in a form that is also valid JSON.

    JSON escapes ASCII control characters itself, so a JSON document stays valid when it is shown this way.
    """
    code = ord(found[0])
    return NAMES.get(found[0]) or (f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}")
