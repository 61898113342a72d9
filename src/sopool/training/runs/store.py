"""The run store: a folder with one folder for each run, from which work goes on after any interruption."""

import secrets
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from sopool._files.atomic import left_overs, whole_file, why
from sopool.errors import DataError, UserError
from sopool.training.runs.config import RunConfig
from sopool.training.runs.dataset_facts import DatasetFacts, facts_file, read_facts_file, write_facts
from sopool.training.runs.files import (
    CHECKPOINT,
    arrays_to_bytes,
    read_arrays,
    read_config,
    read_run,
    write_config,
    write_run,
)
from sopool.training.runs.info import Difference, RunInfo, differences, run_info
from sopool.training.runs.layout import KEY, REQUEST_FILES
from sopool.training.runs.locks import CLAIM, WRITE, RunLocks
from sopool.training.runs.record import Run
from sopool.training.runs.requests import StoredRequest, read_request, write_request
from sopool.training.runs.schema import CHECKPOINT_FACTS

REMOVED = ".removed."

Infos = list[RunInfo]
Keys = list[str]


class RunStore:
    """The runs in ``folder``, which is made when first written to. Any number of processes may use it at once.

    A run is complete when ``curves.safetensors`` is there: it is written last. A complete run with a damaged file
    counts as not there, with a warning: whoever needs it trains it again and gets the same, while an error would stop
    the hundred others of an experiment, and no number is ever taken from a file whose digest is wrong. Nothing is
    deleted for that; the new files take the places of the old ones. What cannot be read or written at all, for want
    of permission or space, is a ``DataError``.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._locks = RunLocks(self.folder)

    def load(self, config: RunConfig) -> Run | None:
        """The run of this configuration; None if it is not complete or, with a warning, not whole."""
        folder = self.folder / config.key
        with self._errors("read"):
            try:
                return read_run(folder, config)
            except UserError:
                pass  # Perhaps it is being replaced just now: look again when nobody writes.
            try:
                with self._quiet(config.key):
                    return read_run(folder, config)
            except UserError as error:
                _warn(f"{error} Run {config.key} counts as not there.")
                return None

    def save(self, run: Run) -> None:
        """Keep a finished run, and drop its checkpoint. The last one to save the same run stays."""
        with self._errors("written"), self._locks.writing(run.config.key):
            write_run(self.folder / run.config.key, run)
            (self.folder / run.config.key / CHECKPOINT).unlink(missing_ok=True)

    def save_checkpoint(
        self, config: RunConfig, arrays: Mapping[str, np.ndarray | Tensor], facts: dict[str, Any]
    ) -> None:
        """Keep where a run stands.

        ``facts``: ``epoch``, the epochs done, ``chosen_epoch``, the best of them so far or None, and ``layout``, a name
        for what the arrays stand for.
        """
        folder = self.folder / config.key
        content = arrays_to_bytes(arrays, facts, config.key)
        with self._errors("written"), self._locks.writing(config.key):
            write_config(folder, config)
            with whole_file(folder / CHECKPOINT) as temporary:
                temporary.write_bytes(content)

    def load_checkpoint(self, config: RunConfig) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The last checkpoint; None if there is none or, with a warning, if it is damaged."""
        path = self.folder / config.key / CHECKPOINT
        with self._errors("read"):
            try:
                facts, found = read_arrays(path, config.key, CHECKPOINT_FACTS)
                return found.arrays, facts
            except FileNotFoundError:
                return None
            except UserError as error:
                _warn(f"{error} Run {config.key} starts over.")
                return None

    def save_dataset(self, facts: DatasetFacts) -> None:
        """Keep what the runs on a data set are judged by, unless it is there.

        A store that can only be read is left as it is: with all runs there it can be judged, and the first run that is
        missing will say that it cannot be kept.
        """
        with self._errors("written"), suppress(OSError):
            if self.load_dataset(facts.fingerprint) is None:
                write_facts(facts_file(self.folder, facts.fingerprint), facts)

    def load_dataset(self, fingerprint: str) -> DatasetFacts | None:
        """What :meth:`save_dataset` kept; None if there is nothing or, with a warning, if it is damaged."""
        path = facts_file(self.folder, fingerprint)
        with self._errors("read"):
            try:
                return read_facts_file(path, fingerprint)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except UserError as error:
                _warn(f"{error} It counts as not there.")
                return None

    def save_request(self, request: StoredRequest) -> None:
        """Keep what is asked for, unless it is there; a store that can only be read is left as it is."""
        with self._errors("written"), suppress(OSError):
            write_request(self.folder, request)

    def load_requests(self) -> list[StoredRequest]:
        """Return all that :meth:`save_request` kept, in the order of their names; a warning for each damaged one."""
        found = []
        with self._errors("read"):
            for path in sorted(self.folder.glob(REQUEST_FILES)):
                try:
                    found.append(read_request(path))
                except UserError as error:
                    _warn(f"{error} It counts as not there.")
        return found

    @contextmanager
    def claim(self, config: RunConfig) -> Iterator[bool]:
        """Say that this process trains the run: ``with store.claim(config) as mine``. False if another does already.

        Look with :meth:`load` once more when the claim is yours: another may have finished it just before.
        """
        with ExitStack() as held:
            with self._errors("written"):
                if mine := held.enter_context(self._locks.claim(config.key)):
                    write_config(self.folder / config.key, config)
            yield mine

    def find(self, prefix: str) -> str:
        """The one key that begins with ``prefix``, which may be all of it."""
        found = [key for key in self._keys() if prefix and key.startswith(prefix)]
        if not found:
            raise DataError(f"no run has a key that begins with {prefix!r}. Look at the list of runs.", self.folder)
        if len(found) > 1:
            some = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
            raise DataError(f"{len(found)} runs have keys that begin with {prefix!r} ({some}): say more.", self.folder)
        return found[0]

    def compare(self, a: str, b: str) -> Difference:
        """Where the configurations of two runs differ, see :func:`differences`; keys as for :meth:`find`."""
        folders = [self.folder / self.find(prefix) for prefix in (a, b)]
        with self._errors("read"):
            return differences(*(read_config(folder) for folder in folders))

    def list(self) -> Infos:
        """All runs, the one last written to last. Runs that come or go meanwhile are there or not."""
        with self._errors("read"):
            found = [self._looked_at(key) for key in self._keys()]
        return sorted((info for info in found if info), key=lambda info: (info.when, info.key))

    def remove(self, keys: Iterable[str]) -> None:
        """Delete runs, keys as for :meth:`find`. One that is running stays, with a ``DataError`` after the others."""
        found = dict.fromkeys([self.find(prefix) for prefix in keys])
        with self._errors("written"):
            busy = [key for key in found if not self._set_aside(key)]
            self._empty_bin()
        if busy:
            raise DataError(f"still running and not removed: {', '.join(busy)}. Stop them first.", self.folder)

    def clean(self) -> Keys:
        """Delete interrupted runs and what killed processes left behind; never a run that somebody trains or writes.

        Gives the keys of the deleted runs. Unreadable ones stay: another version may read them.
        """
        with self._errors("written"):
            keys = [key for key in self._keys() if self._cleaned(key)]
            self._empty_bin()
        return keys

    def _keys(self) -> Keys:
        with self._errors("read"), suppress(FileNotFoundError, NotADirectoryError):
            return sorted(path.name for path in self.folder.iterdir() if KEY.fullmatch(path.name) and path.is_dir())
        return []

    def _looked_at(self, key: str) -> RunInfo | None:
        info = run_info(self.folder / key)
        if info is None or info.kind != "interrupted":
            return info
        # Where the store can only be read, nobody's lock can be tried: then it stays "interrupted".
        with suppress(OSError), self._locks.guard():
            if self._locks.busy(key):
                info = info._replace(kind="running")
        # It may have been finished between the first look and the one at the lock.
        now = run_info(self.folder / key)
        return info if now and now.kind == "interrupted" else now

    def _set_aside(self, key: str) -> bool:
        """Take a run that nobody holds out of the store at one stroke; False if somebody holds it."""
        with self._locks.guard():
            if self._locks.busy(key):
                return False
            self._to_bin(key)
        return True

    def _cleaned(self, key: str) -> bool:
        with self._locks.guard():
            if self._locks.busy(key) or not (info := run_info(self.folder / key)):
                return False
            if info.kind == "interrupted":
                self._to_bin(key)
                return True
            rubbish = [*left_overs(self.folder / key), self.folder / key / CLAIM, self.folder / key / WRITE]
            if info.kind != "unreadable":
                rubbish.append(self.folder / key / CHECKPOINT)
            for path in rubbish:
                path.unlink(missing_ok=True)
        return False

    def _to_bin(self, key: str) -> None:
        with suppress(FileNotFoundError):
            (self.folder / key).rename(self.folder / f"{REMOVED}{key}.{secrets.token_hex(8)}")

    def _empty_bin(self) -> None:
        if self.folder.is_dir():
            for path in self.folder.glob(f"{REMOVED}*"):
                shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def _quiet(self, key: str) -> Iterator[None]:
        """While nobody writes this run, if that can be known: in a store that can only be read it cannot."""
        with ExitStack() as held:
            with suppress(OSError):
                held.enter_context(self._locks.writing(key))
            yield

    @contextmanager
    def _errors(self, what: Literal["read", "written"]) -> Iterator[None]:
        try:
            if self.folder.exists() and not self.folder.is_dir():
                raise DataError("this is a file; a store of runs is a folder.", self.folder)
            yield
        except OSError as error:
            raise DataError(f"the store of runs cannot be {what}: {why(error)}", self.folder) from error
        except NotImplementedError as error:  # from file systems without locks
            raise DataError(f"the store of runs cannot be {what}: {error}.", self.folder) from error


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)
