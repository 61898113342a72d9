"""Store arrays with a header, or JSON, together with a SHA-256 digest of the content.

The digest detects damaged and truncated files. It is not a signature: anyone can make a file with a correct digest, so
readers also check the content, see :mod:`sopool._files.schema`. Arrays are stored as safetensors, without pickle. Equal
arrays and headers give equal bytes.
"""

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from sopool._files.regular import open_regular
from sopool._files.schema import Check, anything, blamed_on, mapping_of, parse_json, record, text
from sopool.errors import DataError

# Part of the header, which comes first. Quotes in names and values are escaped there, so this occurs only once.
DIGEST = re.compile(rb'"digest":"([0-9a-f]{64})"')
BLANK = "0" * 64
PIECE = 1 << 20
"""The number of bytes read at a time."""
MOST_HEADER = 100_000_000
"""The largest header that safetensors allows, in bytes."""
TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""The safetensors names of array types."""

MOST_FACTS = 2**24
"""The largest header with facts about a model or a run, in bytes."""
HEADER: Check = record({"__metadata__": mapping_of(text(most=MOST_FACTS))}, more=anything)
NOT_WHOLE = "not a file written by sopool, or truncated or damaged: the header cannot be read."

Facts = TypeVar("Facts")


class Sealed(NamedTuple):
    """The arrays and the digest of a file whose digest is correct."""

    arrays: dict[str, Tensor]
    digest: str


def seal(arrays: Mapping[str, np.ndarray | Tensor], header: Mapping[str, str]) -> bytes:
    """Return the content that :func:`write_sealed` writes; raise if the header is too large for :func:`read_sealed`."""
    file = io.BytesIO()
    write_sealed(file, arrays, header)
    content = file.getvalue()
    length = int.from_bytes(content[:8], "little")
    if length > MOST_FACTS:
        raise DataError(f"names and settings take {length:,} bytes, but a file can hold at most {MOST_FACTS:,}.")
    return content


def write_sealed(file: BinaryIO, arrays: Mapping[str, np.ndarray | Tensor], header: Mapping[str, str]) -> None:
    """Write a safetensors file with ``arrays`` from any device, a ``header`` and a digest of everything.

    Equal arrays and headers give equal bytes. Unlike the writer of the safetensors library, it creates no other file
    that a killed process would leave behind.
    """
    tensors = {name: _plain(array) for name, array in arrays.items()}
    # Sorted with the widest types first, as in the library, so that every array is aligned.
    tensors = dict(sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])))
    head = _head(tensors, {**header, "digest": BLANK})
    contents = [tensor.flatten().view(torch.uint8).numpy().data for tensor in tensors.values() if tensor.numel()]
    digest = hashlib.sha256(head)
    for content in contents:
        digest.update(content)
    file.write(head.replace(f'"digest":"{BLANK}"'.encode(), f'"digest":"{digest.hexdigest()}"'.encode(), 1))
    file.writelines(contents)


def read_sealed(path: str | Path, most: int, check: Callable[[dict[str, str]], Facts]) -> tuple[Facts, Sealed]:
    """Return what ``check`` returns for the header, and the arrays, of a file of at most ``most`` bytes.

    The header is checked before the rest is read. A ``DataError`` is raised for a file that is not regular or that
    :func:`seal` did not make, an ``OSError`` if the file cannot be read.
    """
    with blamed_on(path), open_regular(path, most) as file:
        facts = check(read_header(_read_head(file)))
        file.seek(0)
        content = file.read(most)
        digest = check_seal(content, path)
        return facts, Sealed(_arrays(content), digest)


def read_sealed_header(path: str | Path, most: int, check: Callable[[dict[str, str]], Facts]) -> Facts:
    """Return what ``check`` returns for the header of a file; the arrays and the digest are not checked."""
    with blamed_on(path), open_regular(path, most) as file:
        return check(read_header(_read_head(file)))


def _read_head(file: BinaryIO) -> bytes:
    """Return the beginning of a safetensors file, up to the end of its header."""
    size = file.read(8)
    length = int.from_bytes(size, "little")
    if len(size) < 8 or length > min(MOST_FACTS, os.fstat(file.fileno()).st_size - 8):
        raise DataError(NOT_WHOLE)
    return size + file.read(length)


def _arrays(content: bytes) -> dict[str, Tensor]:
    try:
        return load(content)
    except (SafetensorError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(
            f"truncated or damaged: the arrays cannot be read ({type(error).__name__}: {error})."
        ) from error


def check_seal(content: bytes, path: str | Path) -> str:
    """Return the digest in a file's content; raise a ``DataError`` if it is wrong."""
    return check_sealed_file(io.BytesIO(content), path)


def check_sealed_file(file: BinaryIO, path: str | Path) -> str:
    """Return the digest in an open file, which is read in pieces; raise a ``DataError`` if it is wrong."""
    length = file.read(8)
    head = length + file.read(min(int.from_bytes(length, "little"), MOST_HEADER))
    if not (found := DIGEST.search(head)):
        raise DataError("truncated or damaged: there is no digest.", path)
    start, end = found.span(1)
    digest = hashlib.sha256(head[:start] + BLANK.encode() + head[end:])
    while piece := file.read(PIECE):
        digest.update(piece)
    if digest.hexdigest() != found[1].decode():
        raise DataError("the content was changed or damaged: the digest differs.", path)
    return digest.hexdigest()


def read_header(content: bytes) -> dict[str, str]:
    """Return the header that :func:`seal` was given from the start of a file; raise a ``DataError`` if invalid."""
    length = int.from_bytes(content[:8], "little")
    try:
        found: dict[str, dict[str, str]] = HEADER(parse_json(content[8 : 8 + length]), "the header")
    except DataError as error:
        raise DataError(f"{NOT_WHOLE[:-1]} ({error})") from error
    return found["__metadata__"]


def parse_facts(found: str) -> Any:
    """Parse a string of the header as JSON."""
    try:
        return parse_json(found)
    except DataError as error:
        raise DataError(f"the header is damaged: {error}") from error


def json_digest(plain: Any) -> str:
    """Return the SHA-256 of a JSON value, independent of its layout in a file."""
    return hashlib.sha256(json.dumps(plain, indent=2, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _head(tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> bytes:
    """Return the header of a safetensors file, preceded by its length."""
    about: dict[str, Any] = {"__metadata__": dict(sorted(header.items()))}
    end = 0
    for name, tensor in tensors.items():
        start = end
        end += tensor.numel() * tensor.element_size()
        about[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(about, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _plain(array: np.ndarray | Tensor) -> Tensor:
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.array(array, order="C"))
    return tensor.detach().cpu().contiguous()
