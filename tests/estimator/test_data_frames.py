"""Columns of a data frame are lists, a data frame is none. Pandas need not be there: what it has is enough."""

import numpy as np
import pytest

from sopool.data import DataError
from sopool.data.formats.molecules import smiles_to_store
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.little_targets import SOME_FLAGS, tiny_regressor


class Column:
    """What pandas' Series has of a list."""

    def __init__(self, values):
        self.values = np.array(values, dtype=object)
        self.dtype = self.values.dtype
        self.iloc = self.values
        self.index = range(1, len(values) + 1)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def __array__(self, dtype=None, copy=None):
        return self.values

    def tolist(self):
        return self.values.tolist()


class Table:
    """What its DataFrame has: to go through it is to go through the names of its columns."""

    def __init__(self, **columns):
        self.columns = list(columns)
        self.iloc = None
        self._values = columns

    def __len__(self):
        return len(self._values[self.columns[0]])

    def __iter__(self):
        return iter(self.columns)

    def __getitem__(self, name):
        return Column(self._values[name])


TABLE = Table(smiles=["C", "CCO", "CC", "CCN"] * 3, label=["no", "yes"] * 6)


def test_columns_of_a_table_are_taken():
    pytest.importorskip("rdkit")
    model = tiny().fit(TABLE["smiles"], TABLE["label"])
    assert model.classes_.tolist() == ["no", "yes"]
    assert len(model.predict(TABLE["smiles"])) == 12


def test_a_table_of_numbers_names_the_targets():
    columns = {"toxic": SOME_FLAGS[:, 0].tolist(), "soluble": SOME_FLAGS[:, 1].tolist()}
    model = tiny(epochs=1).fit(STORE, Table(**columns))
    assert model.target_names_ == ["toxic", "soluble"]
    expected = tiny(epochs=1).fit(STORE, SOME_FLAGS).predict_proba(STORE)
    np.testing.assert_array_equal(model.predict_proba(STORE), expected)
    assert tiny_regressor(epochs=1).fit(STORE, Table(**columns)).target_names_ == ["toxic", "soluble"]


def test_a_table_is_refused_with_what_to_do():
    message = r"a data frame was given, expected one of its columns: pass one, such as table\['smiles'\]"
    with pytest.raises(DataError, match=message):
        tiny().fit(TABLE, TABLE["label"])
    with pytest.raises(DataError, match=message):
        tiny().fit(TABLE)
    with pytest.raises(DataError, match=message):
        smiles_to_store(TABLE)
    with pytest.raises(DataError, match="the target 'smiles' is 'C', expected a number"):
        tiny().fit(STORE[:12], TABLE)
    model = tiny().fit(STORE, LABELS)
    with pytest.raises(DataError, match=message):
        model.predict(TABLE)
