from dataclasses import replace

import numpy as np
import pytest

from sopool.data.formats.packed import content_key
from sopool.data.sources.catalogue import load
from sopool.training.runs.dataset_facts import DatasetFacts, facts_file
from sopool.training.runs.store import RunStore


@pytest.fixture
def facts():
    graphs = load("MUTAG")
    return DatasetFacts.of(graphs, content_key(graphs))


def test_kept_once_and_read_again(tmp_path, facts):
    store = RunStore(tmp_path / "runs")
    assert store.load_dataset(facts.fingerprint) is None
    store.save_dataset(facts)
    path = facts_file(store.folder, facts.fingerprint)
    written = path.stat().st_mtime_ns
    store.save_dataset(facts)
    assert path.stat().st_mtime_ns == written
    found = store.load_dataset(facts.fingerprint)
    assert (found.name, found.classes, found.fingerprint) == ("MUTAG", ("-1", "1"), facts.fingerprint)
    np.testing.assert_array_equal(found.labels, facts.labels)
    assert store.list() == []


def test_a_damaged_one_counts_as_not_there_and_is_written_again(tmp_path, facts):
    store = RunStore(tmp_path)
    store.save_dataset(facts)
    path = facts_file(tmp_path, facts.fingerprint)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="the digest differs"):
        assert store.load_dataset(facts.fingerprint) is None
    with pytest.warns(UserWarning, match="the digest differs"):
        store.save_dataset(facts)
    assert store.load_dataset(facts.fingerprint) is not None


def test_of_another_data_set(tmp_path, facts):
    store = RunStore(tmp_path)
    store.save_dataset(facts)
    facts_file(tmp_path, facts.fingerprint).rename(facts_file(tmp_path, "0" * 16))
    with pytest.warns(UserWarning, match=f"of run {facts.fingerprint}, not of 0000"):
        assert store.load_dataset("0" * 16) is None


def test_refused(tmp_path, facts):
    with pytest.raises(ValueError, match="MUTAG has no labels"):
        DatasetFacts.of(replace(load("MUTAG"), labels=None, classes=()), "0")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="a store of runs is a folder"):
        RunStore(tmp_path / "file").save_dataset(facts)
