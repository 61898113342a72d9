"""Arrays with a header in one file (safetensors, no pickle), or JSON, that carries a SHA-256 of itself.

A bit that flips on the disk or a file that was cut short is noticed, and never taken for what was written. It is no
signature: who wants to can make a file with a right digest, so whoever reads one checks what is in it as well.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from sopool.data.errors import DataError

# In the header, which comes first. Quotes inside names and values are escaped there, so that this is found only once.
DIGEST = re.compile(rb'"digest":"([0-9a-f]{64})"')
BLANK = "0" * 64


def seal(arrays: Mapping[str, np.ndarray | Tensor], header: Mapping[str, str]) -> bytes:
    """A safetensors file of ``arrays`` from any device, with a ``header`` and a digest of it all."""
    content = save({name: _own(array) for name, array in arrays.items()}, metadata={**header, "digest": BLANK})
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(f'"digest":"{BLANK}"'.encode(), f'"digest":"{digest}"'.encode(), 1)


def check_seal(content: bytes, path: str | Path) -> str:
    """The digest that a file carries, if it is right."""
    if not (found := DIGEST.search(content)):
        raise DataError("not a whole file: it has no digest.", path)
    view, (start, end) = memoryview(content), found.span(1)
    digest = hashlib.sha256(view[:start])
    digest.update(BLANK.encode())
    digest.update(view[end:])
    if digest.hexdigest() != found[1].decode():
        raise DataError("its content is not what was written: the digest differs.", path)
    return digest.hexdigest()


def read_header(content: bytes) -> dict[str, str]:
    """The header that :func:`seal` was given, of a file or its head; ``KeyError`` or the like for something else."""
    length = int.from_bytes(content[:8], "little")
    return dict(json.loads(content[8 : 8 + length])["__metadata__"])


def json_digest(plain: Any) -> str:
    """Of what is kept as JSON, however it is laid out there."""
    return hashlib.sha256(json.dumps(plain, indent=2, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _own(array: np.ndarray | Tensor) -> Tensor:
    # A copy: safetensors refuses tensors that share memory, such as slices of one buffer.
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.array(array, order="C"))
    return tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
