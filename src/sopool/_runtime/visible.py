r"""Text from data made safe to show in a terminal.

Class names, ids, file names and the like may hold escape sequences, which would drive the terminal that prints them,
or marks that reorder what is read. Such characters are shown as ``\x1b`` or ``\u202e``; letters of any script, accents
and emoji stay as they are.
"""

import re

UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except the newline, line and paragraph separators, bidirectional controls, lone surrogates."""
NAMES = {"\t": r"\t", "\r": r"\r"}


def visible(text: str) -> str:
    """Return the text with characters that could drive a terminal written out; newlines stay."""
    return UNSAFE.sub(_written_out, text)


def on_one_line(text: str) -> str:
    """Return the text as :func:`visible` does, with newlines written out, too: no name can forge a line of its own."""
    return visible(text).replace("\n", r"\n")


def _written_out(found: re.Match[str]) -> str:
    """Return the escape of one character: beyond ASCII's control characters one that JSON has, too.

    JSON escapes those control characters by itself, so a JSON document that is shown this way stays one.
    """
    code = ord(found[0])
    return NAMES.get(found[0]) or (f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}")
