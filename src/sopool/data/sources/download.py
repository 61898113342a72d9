"""One data set from the TU collection, downloaded once."""

import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from sopool._files.atomic import whole_file
from sopool._files.private import make_private, make_unwritable
from sopool.data.formats.tu import read_tu
from sopool.errors import DataError

DownloadProgress = Callable[[int, int | None], None]
"""Called with the bytes done and the bytes in all, None if the server does not say."""

MAX_DOWNLOAD = 2 << 30
TIMEOUT = 30


def tu_address(name: str) -> str:
    """Where the TU collection has ``name``; PyG knows."""
    from torch_geometric.datasets import TUDataset

    return f"{TUDataset.url}/{name}.zip"


def download(name: str, folder: Path, progress: DownloadProgress | None = None) -> Path:
    """Fetch ``name`` from the TU collection into ``folder``: whole and readable, or not at all."""
    target = folder / f"{name}.zip"
    try:
        make_private(folder)
        with whole_file(target) as temporary:
            with temporary.open("wb") as file:
                _fetch(tu_address(name), file.write, progress)
                make_unwritable(file)
            read_tu(temporary, name=name)
            target.unlink(missing_ok=True)  # or the new file would be given the mode of the old one
    except (urllib.error.URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(f"{name} could not be downloaded from the TU collection: {reason}.") from error
    return target


def _fetch(address: str, write: Callable[[bytes], int], progress: DownloadProgress | None) -> None:
    with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
        total = int(answer.headers["Content-Length"]) if answer.headers["Content-Length"] else None
        done = 0
        while piece := answer.read(1 << 16):
            done += len(piece)
            if done > MAX_DOWNLOAD:
                raise DataError(f"{address} is larger than {MAX_DOWNLOAD >> 30} GiB: refused.")
            write(piece)
            if progress is not None:
                progress(done, total)
        if total is not None and done != total:
            raise DataError(f"{address} broke off after {done} of {total} bytes. Try again.")
