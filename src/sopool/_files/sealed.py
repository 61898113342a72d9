"""Arrays with a header in one file (safetensors, no pickle), or JSON, that carries a SHA-256 of itself.

A bit that flips on the disk or a file that was cut short is noticed, and never taken for what was written. It is no
signature: who wants to can make a file with a right digest, so whoever reads one checks what is in it as well, see
:mod:`sopool._files.schema`. Equal arrays and headers give equal bytes.
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

# In the header, which comes first. Quotes inside names and values are escaped there, so that this is found only once.
DIGEST = re.compile(rb'"digest":"([0-9a-f]{64})"')
BLANK = "0" * 64
PIECE = 1 << 20
"""Bytes read at a time."""
MOST_HEADER = 100_000_000
"""Bytes that safetensors allows a header."""
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
"""How safetensors names the types of arrays."""

MOST_FACTS = 2**24
"""Bytes of a header that holds facts about a model or a run."""
HEADER: Check = record({"__metadata__": mapping_of(text(most=MOST_FACTS))}, more=anything)
NOT_WHOLE = "not a whole file: its header cannot be read."

Facts = TypeVar("Facts")


class Sealed(NamedTuple):
    """What a file holds whose digest is right."""

    arrays: dict[str, Tensor]
    digest: str


def seal(arrays: Mapping[str, np.ndarray | Tensor], header: Mapping[str, str]) -> bytes:
    """Return the content of :func:`write_sealed`, if its header is one that :func:`read_sealed` takes."""
    file = io.BytesIO()
    write_sealed(file, arrays, header)
    content = file.getvalue()
    length = int.from_bytes(content[:8], "little")
    if length > MOST_FACTS:
        raise DataError(f"names and settings take {length:,} bytes, a file has room for {MOST_FACTS:,} of them.")
    return content


def write_sealed(file: BinaryIO, arrays: Mapping[str, np.ndarray | Tensor], header: Mapping[str, str]) -> None:
    """Write a safetensors file of ``arrays`` from any device, with a ``header`` and a digest of it all.

    The same arrays and header give the same bytes. Nothing is written but to ``file``: the writer of the safetensors
    library makes a file of its own beside it, which a killed process leaves behind.
    """
    tensors = {name: _plain(array) for name, array in arrays.items()}
    # The widest types first, as the library does, so that every array is aligned.
    tensors = dict(sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])))
    head = _head(tensors, {**header, "digest": BLANK})
    contents = [tensor.flatten().view(torch.uint8).numpy().data for tensor in tensors.values() if tensor.numel()]
    digest = hashlib.sha256(head)
    for content in contents:
        digest.update(content)
    file.write(head.replace(f'"digest":"{BLANK}"'.encode(), f'"digest":"{digest.hexdigest()}"'.encode(), 1))
    file.writelines(contents)


def read_sealed(path: str | Path, most: int, check: Callable[[dict[str, str]], Facts]) -> tuple[Facts, Sealed]:
    """Return the facts that ``check`` finds in the header, and the arrays, of a file of at most ``most`` bytes.

    The file must be a regular one. Its header is checked before the rest is read. ``DataError`` for anything else than
    :func:`seal` gave; ``OSError`` where the file cannot be read.
    """
    with blamed_on(path), open_regular(path, most) as file:
        facts = check(read_header(_read_head(file)))
        file.seek(0)
        content = file.read(most)
        digest = check_seal(content, path)
        return facts, Sealed(_arrays(content), digest)


def read_sealed_header(path: str | Path, most: int, check: Callable[[dict[str, str]], Facts]) -> Facts:
    """Return the facts of :func:`read_sealed` without a look at the rest of the file, nor at its digest."""
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
        raise DataError(f"not a whole file: its arrays cannot be read ({type(error).__name__}: {error}).") from error


def check_seal(content: bytes, path: str | Path) -> str:
    """The digest that a file carries, if it is right."""
    return check_sealed_file(io.BytesIO(content), path)


def check_sealed_file(file: BinaryIO, path: str | Path) -> str:
    """Return the digest that an open file carries, if it is right; it is read piece by piece, from its beginning."""
    length = file.read(8)
    head = length + file.read(min(int.from_bytes(length, "little"), MOST_HEADER))
    if not (found := DIGEST.search(head)):
        raise DataError("not a whole file: it has no digest.", path)
    start, end = found.span(1)
    digest = hashlib.sha256(head[:start] + BLANK.encode() + head[end:])
    while piece := file.read(PIECE):
        digest.update(piece)
    if digest.hexdigest() != found[1].decode():
        raise DataError("its content is not what was written: the digest differs.", path)
    return digest.hexdigest()


def read_header(content: bytes) -> dict[str, str]:
    """Return the header that :func:`seal` was given, of a file or its head; ``DataError`` for something else."""
    length = int.from_bytes(content[:8], "little")
    try:
        found: dict[str, dict[str, str]] = HEADER(parse_json(content[8 : 8 + length]), "the header")
    except DataError as error:
        raise DataError(f"{NOT_WHOLE[:-1]} ({error})") from error
    return found["__metadata__"]


def parse_facts(found: str) -> Any:
    """Return the JSON that a header has as one of its texts."""
    try:
        return parse_json(found)
    except DataError as error:
        raise DataError(f"the facts in its header are damaged: {error}") from error


def json_digest(plain: Any) -> str:
    """Return the SHA-256 of what is kept as JSON, however it is laid out there."""
    return hashlib.sha256(json.dumps(plain, indent=2, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _head(tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> bytes:
    """The header of a safetensors file, with its length before it."""
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
