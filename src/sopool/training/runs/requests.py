"""Requests: records of what was asked for, written into a store of runs before training begins.

A request says which runs belong together, so that nothing has to be guessed when the store is read later. Its file is
named by a hash of its content: equal requests share one file, and files are never changed.
"""

import json
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from sopool._files.atomic import whole_file
from sopool._files.schema import (
    MOST_BYTES,
    anything,
    blamed_on,
    list_of,
    number,
    optional,
    read_json,
    record,
    text,
    tuple_of,
    whole,
)
from sopool._files.sealed import json_digest
from sopool.errors import DataError
from sopool.models.config import FIELDS as MODEL_FIELDS
from sopool.models.config import Setting
from sopool.training.runs.config import BELOW_ONE, Looks
from sopool.training.runs.config import FIELDS as RUN_FIELDS
from sopool.training.runs.layout import KEY, REQUEST_FILES, path_of

FORMAT = "sopool request 1"


@dataclass(frozen=True)
class RequestedPool:
    """One pooling of a request, with the keys of its runs by the graphs that they are scored on.

    Examples:
        >>> from sopool.training.runs.requests import RequestedPool
        >>> asked = RequestedPool("sum", validation=("a", "b"), chosen=("c",))
        >>> asked.among({"a", "c"}), asked.among({"a", "b", "c"})
        (['a'], ['a', 'b', 'c'])
    """

    pool: str
    """The name of the pooling."""
    test: tuple[str, ...] = ()
    """The runs of all settings and folds, for the protocols that score the test folds at every epoch."""
    validation: tuple[str, ...] = ()
    """The runs of all settings and folds from which ``fair`` chooses a setting for each fold; empty if there is only
    one."""
    chosen: tuple[str, ...] = ()
    """The final runs of ``fair`` at all settings. Only those at the setting chosen for a fold are trained."""

    def among(self, complete: Container[str]) -> list[str]:
        """Return the runs that are ``complete``; final runs only if all runs that choose their settings are."""
        decided = all(key in complete for key in self.validation)
        wanted = (*self.test, *self.validation, *(self.chosen if decided else ()))
        return [key for key in wanted if key in complete]


@dataclass(frozen=True)
class StoredRequest:
    """An evaluation of some poolings on one data set, as it was requested; see :class:`sopool.experiments.Request`.

    Examples:
        >>> from sopool.data import make_agreement
        >>> from sopool.experiments import Evaluator, Request
        >>> from sopool.training.runs.store import RunStore
        >>> stored = Evaluator(make_agreement(60), Request(["sum"], folds=2), RunStore("runs")).stored_request()
        >>> len(stored.pools[0].chosen)  # three final runs on each of two folds
        6
    """

    dataset: str
    fingerprint: str
    pools: tuple[RequestedPool, ...]
    protocols: tuple[str, ...]
    gnn: str
    settings: tuple[Setting, ...]
    epochs: int
    folds: int
    seed: int
    steps: int | None
    """Batches per epoch; None: one pass over the training graphs of the fold."""
    preset: str
    blocks: int
    head: str | None
    block_readout: str
    pool_options: Mapping[str, Any] = field(default_factory=dict)
    """The given options; each applies to the poolings that have it."""
    task: str | None = None
    metric: str | None = None
    loss: str | None = None
    split: str | None = None
    """What the graphs are divided by, see :attr:`sopool.training.runs.config.RunConfig.split`; None: at random."""
    split_seed: int | None = None
    """The random seed of the folds; None: 0."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object for :meth:`from_json`; later fields are left out if they were not given."""
        plain = asdict(self) | {"settings": [setting.to_json() for setting in self.settings]}
        return {name: value for name, value in plain.items() if name not in LATER or value is not None}

    @classmethod
    def from_json(cls, saved: Any) -> "StoredRequest":
        """Return the request that :meth:`to_json` wrote; raise ``DataError`` if ``saved`` is not one."""
        found = SAVED(saved, "request")
        pools = tuple(RequestedPool(**one) for one in found["pools"])
        return cls(**found | {"pools": pools, "settings": tuple(Setting(**one) for one in found["settings"])})


NAME = text(most=2**10)
LATER = dict.fromkeys(("task", "metric", "loss", "split", "split_seed"))
"""Fields that the first files lacked, all None."""
KEYS = tuple_of(text(KEY.pattern))
SETTING = record(
    {
        "hidden": MODEL_FIELDS["hidden"],
        "batch_size": RUN_FIELDS["batch_size"],
        "lr": number(0),
        "dropout": number(0, BELOW_ONE),
    }
)
SAVED = record(
    {
        **{name: RUN_FIELDS[name] for name in ("fingerprint", "epochs", "folds", "seed")},
        **{name: MODEL_FIELDS[name] for name in ("gnn", "blocks", "block_readout", "pool_options")},
        "dataset": NAME,
        "pools": list_of(record({"pool": NAME} | dict.fromkeys(get_args(Looks), KEYS)), most=2**10),
        "protocols": tuple_of(NAME, most=2**4),
        "settings": list_of(SETTING, most=2**16),
        "steps": optional(whole(1, 2**31)),
        "preset": NAME,
        "head": optional(MODEL_FIELDS["head"]),
        **{name: optional(RUN_FIELDS[name]) for name in LATER},
    },
    LATER,
)
FILE = record({"format": text(), "digest": text(), "request": anything})


def write_request(runs: Path, request: StoredRequest) -> None:
    """Write a request into a store of runs, unless it is there.

    A request that is too large to be read again is not written; its runs are found without it.
    """
    plain = json.loads(json.dumps(request.to_json()))
    digest = json_digest(plain)
    path = path_of(runs, REQUEST_FILES, digest[:16])
    content = (json.dumps({"format": FORMAT, "digest": digest, "request": plain}, indent=1) + "\n").encode()
    if len(content) > MOST_BYTES or (path.is_file() and path.read_bytes() == content):
        return
    StoredRequest.from_json(plain)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def read_request(path: Path) -> StoredRequest:
    """Return the request that :func:`write_request` wrote; raise ``DataError`` if the file is not one of these."""
    with blamed_on(path, "this file is not a valid request: "):
        saved = FILE(read_json(path), "the file")
        if saved["format"] != FORMAT:
            raise DataError(
                f"the format is {saved['format'][:40]!r}, expected {FORMAT!r}: another version wrote the file."
            )
        if saved["digest"] != json_digest(saved["request"]) or saved["digest"][:16] != path.stem:
            raise DataError("the digest differs.")
        return StoredRequest.from_json(saved["request"])
