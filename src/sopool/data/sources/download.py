"""Download a data set of the TU collection."""

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
"""A function called with the bytes downloaded so far and in total; the total is None if the server does not say."""

MAX_DOWNLOAD = 2 << 30
TIMEOUT = 30


def tu_address(name: str) -> str:
    """Return the address of a data set of the TU collection, which PyG knows."""
    from torch_geometric.datasets import TUDataset

    return f"{TUDataset.url}/{name}.zip"


def download(name: str, folder: Path, progress: DownloadProgress | None = None) -> Path:
    """Download a data set of the TU collection into ``folder``, check that it can be read, and return its path."""
    target = folder / f"{name}.zip"
    try:
        make_private(folder)
        with whole_file(target) as temporary:
            with temporary.open("wb") as file:
                _fetch(tu_address(name), file.write, progress)
                make_unwritable(file)
            read_tu(temporary, name=name)
            target.unlink(missing_ok=True)  # otherwise the new file would get the permissions of the old one
    except (urllib.error.URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        reason = getattr(reason, "strerror", None) or reason
        raise DataError(f"{name} could not be downloaded from the TU collection ({reason}).") from error
    return target


def _fetch(address: str, write: Callable[[bytes], int], progress: DownloadProgress | None) -> None:
    with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
        total = int(answer.headers["Content-Length"]) if answer.headers["Content-Length"] else None
        done = 0
        while piece := answer.read(1 << 16):
            done += len(piece)
            if done > MAX_DOWNLOAD:
                raise DataError(
                    f"{address} is larger than {MAX_DOWNLOAD >> 30} GiB, which is the limit. Download it by other "
                    "means and give its path."
                )
            write(piece)
            if progress is not None:
                progress(done, total)
        if total is not None and done != total:
            raise DataError(f"the download of {address} ended after {done} of {total} bytes. Try again.")
