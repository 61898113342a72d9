"""Files that are sealed as ours are, with something else in them than we would write."""

import copy
import hashlib
import json
import os

import torch
from safetensors.torch import load

from sopool._files.sealed import read_header, seal

DEEP = json.loads("[" * 50 + "]" * 50)
WRONG = (None, True, 0, -1, 2.11, 10**12, "", "\x1b[31m", [], [[1]], {}, DEEP)
"""What a fact is replaced by."""


def changed_facts(plain):
    """Yield copies of JSON with one fact dropped or replaced, each with words that say which."""
    for number, place in enumerate(places(plain)):
        *above, last = place
        for value in ("dropped", *some_of(WRONG, number)):
            changed = copy.deepcopy(plain)
            owner = changed
            for name in above:
                owner = owner[name]
            if value == "dropped":
                del owner[last]
            else:
                owner[last] = value
            yield f"{'.'.join(map(str, place))} is {str(value)[:20]}", changed


def some_of(values, number):
    """Return two of many values, others for each number; all of them in ``make test-all``."""
    if os.environ.get("SOPOOL_TEST_ALL"):
        return values
    return [values[(number + step) % len(values)] for step in (0, 5)]


def places(plain):
    """Where each fact is; of a list the first will do."""
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain[:1]) if isinstance(plain, list) else ()
    for name, value in inner:
        yield (name,)
        yield from ((name, *place) for place in places(value))


def changed_arrays(arrays):
    """Yield copies of arrays with one of them dropped, added or changed, each with words that say which."""
    yield "more", arrays | {"more": torch.zeros(1)}
    for number, (name, array) in enumerate(arrays.items()):
        yield f"{name} dropped", {other: arrays[other] for other in arrays if other != name}
        for what in some_of(tuple(CHANGES), number):
            yield f"{name} {what}", arrays | {name: CHANGES[what](array)}


CHANGES = {
    "as bfloat16": lambda array: array.bfloat16(),
    "as whole numbers": lambda array: array.nan_to_num().clamp(-9, 9).int(),
    "as fractions": lambda array: array.double() + 0.5,
    "of one dimension more": lambda array: array[None],
    "flat": lambda array: array.flatten(),
    "empty": lambda array: array[:0],
    "longer": lambda array: torch.cat([array, array]),
    "huge": lambda array: torch.full_like(array, 10**12 if array.dtype == torch.int64 else 3e38),
    "negative": lambda array: torch.full_like(array, -1),
    "2.11": lambda array: torch.full_like(array, 2 if array.dtype == torch.int64 else 2.11),
    "not a number": lambda array: array * float("nan"),
}


def forge(content, arrays=None, **header):
    """Return a file with other arrays, or other texts in its header, and a right digest."""
    about = read_header(content)
    del about["digest"]
    return seal(load(content) if arrays is None else arrays, about | header)


def facts_of(content):
    return json.loads(read_header(content)["facts"])


def key_of(config):
    """Return the key of a run whose configuration is any JSON, as ``RunConfig`` has it."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
