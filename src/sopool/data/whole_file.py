"""Files that are written whole or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; it takes the place of ``path`` at the end, or goes away on any error."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
