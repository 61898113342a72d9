"""The store of runs: a folder with one folder for each run, from which interrupted training continues."""

import hashlib
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
from sopool.training.runs.layout import CONFIG_FILES, KEY, REQUEST_FILES, path_of
from sopool.training.runs.locks import CLAIM, GUARD, WRITE, RunLocks
from sopool.training.runs.record import Run
from sopool.training.runs.requests import StoredRequest, read_request, write_request
from sopool.training.runs.schema import CHECKPOINT_FACTS

REMOVED = ".removed."

Infos = list[RunInfo]
Keys = list[str]


class RunStore:
    """The runs in a folder, which is created on the first write. Any number of processes may use it at the same time.

    A run is complete when its ``curves.safetensors`` exists, which is written last. A complete run with a damaged file
    counts as missing, with a warning: it is trained again, with the same result, and the other runs of an experiment
    are
    not affected. Results are never read from a file whose digest is wrong. Damaged files are not deleted but replaced.
    A folder that cannot be read or written at all raises ``DataError``.

    Args:
        folder: The folder of the runs.

    Examples:
        >>> from sopool.models import ModelConfig
        >>> from sopool.training.runs.config import RunConfig
        >>> from sopool.training.runs.store import RunStore
        >>> store = RunStore("no-such-folder")
        >>> store.list()
        []
        >>> store.load(RunConfig("MUTAG", fingerprint="0", encoder="", model=ModelConfig(), fold=0)) is None
        True
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._locks = RunLocks(self.folder)

    def load(self, config: RunConfig) -> Run | None:
        """Return the run of this configuration; None if it is not complete or, with a warning, if it is damaged."""
        folder = self.folder / config.key
        with self._errors("read"):
            try:
                return read_run(folder, config)
            except UserError:
                pass  # It may be in the middle of a replacement: read it again while nobody writes.
            try:
                with self._quiet(config.key):
                    return read_run(folder, config)
            except UserError as error:
                _warn(f"{error} Run {config.key} counts as missing.")
                return None

    def save(self, run: Run) -> None:
        """Store a finished run and remove its checkpoint. If several processes save the same run, the last one wins."""
        with self._errors("written"), self._locks.writing(run.config.key):
            write_run(self.folder / run.config.key, run)
            (self.folder / run.config.key / CHECKPOINT).unlink(missing_ok=True)

    def save_checkpoint(
        self, config: RunConfig, arrays: Mapping[str, np.ndarray | Tensor], facts: dict[str, Any]
    ) -> None:
        """Store the current state of an unfinished run.

        Args:
            config: The run.
            arrays: The state of its model and of its recorder.
            facts: ``epoch``, the number of finished epochs; ``chosen_epoch``, the best of them so far or None; and
                ``layout``, an identifier of what the arrays mean.
        """
        folder = self.folder / config.key
        content = arrays_to_bytes(arrays, facts, config.key)
        with self._errors("written"), self._locks.writing(config.key):
            write_config(folder, config)
            with whole_file(folder / CHECKPOINT) as temporary:
                temporary.write_bytes(content)

    def load_checkpoint(self, config: RunConfig) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the last checkpoint; None if there is none or, with a warning, if it is damaged."""
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
        """Store what the runs on a data set are judged by, unless it is there.

        A read-only store is left as it is: if all runs are there it can be judged, and the first missing run will raise
        an
        error when it is saved.
        """
        with self._errors("written"), suppress(OSError):
            if self.load_dataset(facts.fingerprint) is None:
                write_facts(facts_file(self.folder, facts.fingerprint), facts)

    def load_dataset(self, fingerprint: str) -> DatasetFacts | None:
        """Return what :meth:`save_dataset` stored; None if there is nothing or, with a warning, if it is damaged."""
        path = facts_file(self.folder, fingerprint)
        with self._errors("read"):
            try:
                return read_facts_file(path, fingerprint)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except UserError as error:
                _warn(f"{error} It counts as missing.")
                return None

    def save_request(self, request: StoredRequest) -> None:
        """Store a request, unless it is there; a read-only store is left as it is."""
        with self._errors("written"), suppress(OSError):
            write_request(self.folder, request)

    def load_requests(self) -> list[StoredRequest]:
        """Return all stored requests, ordered by file name; warn about each damaged one."""
        found = []
        with self._errors("read"):
            for path in sorted(self.folder.glob(REQUEST_FILES)):
                try:
                    found.append(read_request(path))
                except UserError as error:
                    _warn(f"{error} It counts as missing.")
        return found

    def save_config(self, command: str, text: str) -> Path | None:
        """Store a config file that repeats a command; return its path, or None if the store is read-only."""
        path = path_of(self.folder, CONFIG_FILES, f"{command}-{hashlib.sha256(text.encode()).hexdigest()[:12]}")
        with self._errors("written"), suppress(OSError):
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                with whole_file(path) as temporary:
                    temporary.write_bytes(text.encode())
            return path
        return None

    @contextmanager
    def claim(self, config: RunConfig) -> Iterator[bool]:
        """Claim a run for training: ``with store.claim(config) as mine``. The value is False if another process has it.

        Call :meth:`load` again after a successful claim: another process may have finished the run just before.
        """
        with ExitStack() as held:
            with self._errors("written"):
                if mine := held.enter_context(self._locks.claim(config.key)):
                    write_config(self.folder / config.key, config)
            yield mine

    def find(self, prefix: str) -> str:
        """Return the only key that begins with ``prefix``; raise ``DataError`` if there is none or more than one."""
        found = [key for key in self._keys() if prefix and key.startswith(prefix)]
        if not found:
            raise DataError(
                f"no run has a key that begins with {prefix!r}: `sopool runs --all` lists the keys.", self.folder
            )
        if len(found) > 1:
            some = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
            raise DataError(
                f"{len(found)} runs have keys that begin with {prefix!r} ({some}): give more of the key.", self.folder
            )
        return found[0]

    def compare(self, a: str, b: str) -> Difference:
        """Return the fields in which two configurations differ, with both values; keys as for :meth:`find`."""
        folders = [self.folder / self.find(prefix) for prefix in (a, b)]
        with self._errors("read"):
            return differences(*(read_config(folder) for folder in folders))

    def list(self) -> Infos:
        """Return all runs, ordered by their last change. Runs that are added or removed meanwhile may be missing."""
        with self._errors("read"):
            found = [self._looked_at(key) for key in self._keys()]
        return sorted((info for info in found if info), key=lambda info: (info.when, info.key))

    def remove(self, keys: Iterable[str]) -> None:
        """Delete runs, with keys as for :meth:`find`; raise ``DataError`` at the end if some are in training."""
        found = dict.fromkeys([self.find(prefix) for prefix in keys])
        with self._errors("written"):
            busy = [key for key in found if not self._set_aside(key)]
            self._empty_bin()
        if busy:
            raise DataError(
                f"these runs are in training and were not removed: {', '.join(busy)}. Stop them first.", self.folder
            )

    def clean(self) -> Keys:
        """Delete interrupted runs and the leftovers of killed processes, but no run that a process trains or writes.

        Returns the keys of the deleted runs. Unreadable runs are kept, since another version may read them.
        """
        with self._errors("written"):
            keys = [key for key in self._keys() if self._cleaned(key)]
            self._empty_bin()
        return keys

    def discard(self) -> None:
        """Delete what :meth:`clean` deletes, and then the folder unless anything else is in it."""
        self.clean()
        with suppress(OSError):
            (self.folder / GUARD).unlink(missing_ok=True)
            self.folder.rmdir()

    def _keys(self) -> Keys:
        with self._errors("read"), suppress(FileNotFoundError, NotADirectoryError):
            return sorted(path.name for path in self.folder.iterdir() if KEY.fullmatch(path.name) and path.is_dir())
        return []

    def _looked_at(self, key: str) -> RunInfo | None:
        info = run_info(self.folder / key)
        if info is None or info.kind != "interrupted":
            return info
        # In a read-only store no lock can be tried, so the state stays "interrupted".
        with suppress(OSError), self._locks.guard():
            if self._locks.busy(key):
                info = info._replace(kind="running")
        # The run may have been finished between the first check and that of the lock.
        now = run_info(self.folder / key)
        return info if now and now.kind == "interrupted" else now

    def _set_aside(self, key: str) -> bool:
        """Move a run out of the store atomically; return False if a process uses it."""
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
        """Exclude writers of this run for the block; in a read-only store, where locks are impossible, do nothing."""
        with ExitStack() as held:
            with suppress(OSError):
                held.enter_context(self._locks.writing(key))
            yield

    @contextmanager
    def _errors(self, what: Literal["read", "written"]) -> Iterator[None]:
        try:
            if self.folder.exists() and not self.folder.is_dir():
                raise DataError(
                    "this is a file, but a store of runs is a folder. Give the path of a folder.", self.folder
                )
            yield
        except OSError as error:
            raise DataError(f"the store of runs cannot be {what}: {why(error)}", self.folder) from error
        except NotImplementedError as error:  # from file systems without locks
            raise DataError(f"the store of runs cannot be {what}: {error}.", self.folder) from error


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)
