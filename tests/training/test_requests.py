"""Requests are kept in the store of runs, and read only as they were written."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest

from sopool._files.sealed import json_digest
from sopool.errors import UserError
from sopool.training.runs.layout import is_kept
from sopool.training.runs.requests import read_request
from sopool.training.runs.store import RunStore
from tests.helpers.forging import changed_facts
from tests.helpers.stores import REQUEST, fill


def file_of(store):
    (path,) = store.folder.glob("requests/*")
    return path


def test_the_same_request_is_one_file(tmp_path):
    store = RunStore(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: store.save_request(REQUEST), range(32)))
    assert store.load_requests() == [REQUEST]
    assert is_kept(file_of(store))
    before = file_of(store).stat().st_mtime_ns
    store.save_request(replace(REQUEST, pool_options={"rank": 3, "moments": (1, 2)}))
    assert file_of(store).stat().st_mtime_ns == before
    store.save_request(replace(REQUEST, seed=1))
    assert len(store.load_requests()) == 2


def test_damage_is_noticed_and_mended(tmp_path):
    store = RunStore(tmp_path)
    store.save_request(REQUEST)
    path = file_of(store)
    path.write_text(path.read_text().replace("TOY", "TOO"))
    with pytest.warns(UserWarning, match="the digest differs. It counts as missing"):
        assert store.load_requests() == []
    store.save_request(REQUEST)
    assert store.load_requests() == [REQUEST]


def test_forged_requests_are_refused_or_harmless(tmp_path):
    plain = json.loads(json.dumps(REQUEST.to_json()))
    for what, forged in changed_facts(plain):
        digest = json_digest(forged)
        path = tmp_path / f"{digest[:16]}.json"
        path.write_text(json.dumps({"format": "sopool request 1", "digest": digest, "request": forged}))
        with suppress(UserError):
            assert json.loads(json.dumps(read_request(path).to_json())) == forged, what


def test_lists_and_deletions_of_runs_leave_requests_alone(tmp_path):
    store = fill(tmp_path, looks=("test",), hidden=(8,))
    store.save_request(REQUEST)
    keys = [info.key for info in store.list()]
    assert store.clean() == []
    store.remove(keys)
    assert store.list() == []
    assert store.load_requests() == [REQUEST]


def test_a_store_that_cannot_be_written_is_left_as_it_is(tmp_path):
    (tmp_path / "requests").write_text("in the way")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RunStore(tmp_path).save_request(REQUEST)
        assert RunStore(tmp_path).load_requests() == []


def test_final_runs_count_once_all_are_there_that_choose_them():
    (pool,) = REQUEST.pools
    assert pool.among({"0" * 16, "2" * 16}) == ["0" * 16]
    assert pool.among({"1" * 16, "2" * 16}) == ["1" * 16, "2" * 16]
    assert replace(pool, validation=()).among({"3" * 16}) == ["3" * 16]
