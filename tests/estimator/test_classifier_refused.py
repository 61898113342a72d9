"""Graphs, labels and settings that cannot be."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from sopool.data import AttributeEncoder, DataError, Graph, NodeLabelEncoder, to_pyg
from sopool.errors import SettingError, UserError
from tests.helpers.little_classifier import LABELS, STORE, tiny


@pytest.mark.parametrize(
    ("graphs", "y", "message"),
    [
        ("graphs.jsonl", None, "Read a file with sopool.data.load"),
        (7, None, "of type int was given"),
        ([], [], "an empty list was given"),
        (nx.path_graph(3), [0], "a single graph was given: put it into a list"),
        (to_pyg(STORE)[0], [0], "a single graph was given"),
        (Batch.from_data_list(to_pyg(STORE)), None, "to_data_list"),
        (DataLoader(to_pyg(STORE), 8), None, "to_data_list"),
        (STORE[[]], [], "has no graphs"),
        ([1, 2], [0, 1], "graph 0 is of type int"),
        ([Graph(1), "CC"], [0, 1], "graph 1 is of type str"),
        (STORE, LABELS[:3], r"labels have shape \[3\] for 40 graphs"),
        (STORE, ["a"] * 40, "at least two classes"),
        (STORE, [None, *LABELS[1:]], "the label of graph 0 is missing"),
        (STORE, np.arange(40) / 7, "predicted by GraphRegressor"),
        (STORE, [1j] * 40, "the label 1j of type complex was given"),
        (STORE, np.full(40, 1j), "labels of type complex128"),
        (STORE, "ab" * 20, "give a list with one for each graph"),
        (STORE, dict.fromkeys(range(40)), "in the same order"),
        (STORE, 7, "the labels are 7: give a list"),
        (STORE, np.where(np.arange(40) % 2, np.inf, 0), "the label inf is not a class"),
        (STORE, [0.5, 1] * 20, "the label 0.5 is not a class"),
        (STORE, [0, 1, "1", 0] * 10, "the labels contain both 1, of type int, and the string '1'"),
        (STORE, [0, np.int8(1), np.str_("1"), 0] * 10, "look the same in a file"),
        (STORE, np.array([0, 1.0, "1", 0] * 10, dtype=object), "both 1.0, of type float"),
        (STORE, [True, "True"] * 20, "Write both as numbers or both as strings"),
    ],
)
def test_graphs_and_labels_that_cannot_be_are_refused(graphs, y, message):
    with pytest.raises(DataError, match=message):
        tiny().fit(graphs, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_models": 0}, "n_models=0: a whole number of at least 1"),
        ({"epochs": 2.5}, "epochs=2.5: a whole number"),
        ({"steps": 0}, "steps=0"),
        ({"patience": -1}, "patience=-1"),
        ({"lr": 0}, "lr=0: a positive number is needed"),
        ({"lr": float("inf")}, "lr=inf"),
        ({"lr": "0.1"}, "lr='0.1'"),
        ({"hidden": True}, "hidden=True: a whole number"),
        ({"dropout": None}, "dropout=None: a number of at least 0 and below 1"),
        ({"pool": None}, "pool=None: a name from the list of sopool pools"),
        ({"gnn": 3}, "gnn=3: a name"),
        ({"pool_options": "rank=3"}, "pool_options='rank=3': a dictionary of options by name is needed, or None"),
        ({"encoder": "degree"}, "encoder='degree': an encoder such as"),
        ({"callback": 1}, "callback=1: a function"),
        ({"device": 0}, "device=0: a name"),
        ({"dropout": 1}, "dropout=1"),
        ({"weight_decay": -1}, "weight_decay=-1"),
        ({"average": 1.0}, "average=1.0"),
        ({"validation_fraction": 1.0}, "validation_fraction=1.0"),
        ({"class_weight": "even"}, "class_weight='even'"),
        ({"class_weight": {"evn": 1}}, "names 'evn', which is not a class"),
        ({"class_weight": {"even": -1}}, "finite numbers of at least 0"),
        ({"pool": "sopol"}, "Did you mean 'sopool'"),
        ({"pool_options": {"rank": 0}}, "cannot be made with rank=0"),
        ({"pool_options": {"rnk": 3}}, "has the option rnk=3. Their options: sopool-bimap has rank, "),
        ({"gnn": "gin"}, "there is no GNN 'gin'"),
        ({"device": "tpu"}, "no device 'tpu'"),
        ({"lr": 1e30, "epochs": 1}, "use a learning rate below 1e"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        tiny(**settings).fit(STORE, LABELS)


def test_an_encoder_without_a_place_for_the_unknown_is_refused():
    """One node label is in one graph only, and some model holds that out."""
    graphs = [Graph(2, [(0, 1)], node_labels=[0, 0 if i else 9]) for i in range(12)]
    with pytest.raises(SettingError, match="create it with unknown=True"):
        tiny(n_models=20, epochs=1, encoder=NodeLabelEncoder(unknown=False)).fit(graphs, [0, 1] * 6)


def test_features_that_are_too_large_to_train_on():
    """Lowering the learning rate would not help."""
    large = replace(STORE, node_attributes=STORE.node_attributes * 1e25)
    with pytest.raises(
        DataError, match=r"the loss is not finite.*or scale the node features, which are up to \d.*e\+25"
    ):
        tiny(encoder=AttributeEncoder(standardize=False)).fit(large, LABELS)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "predict_with_uncertainty", "transform", "explain"])
def test_numbers_too_large_to_score_are_refused_by_name(ask):
    graphs = [Graph(2, edges=[(0, 1), (1, 0)], node_attributes=[[i % 2], [i / 40]]) for i in range(40)]
    model = tiny().fit(graphs, LABELS)
    huge = Graph(2, node_attributes=[[1e30], [-3e38]])
    with pytest.raises(DataError, match=r"graph 1: .* are not finite.*attributes of up to 3e\+38"):
        getattr(model, ask)([graphs[0], huge, graphs[1]])
    assert np.isfinite(model.predict_proba(graphs[:2])).all()


@pytest.mark.parametrize("name", ["node_labels", "node_attributes"])
def test_graphs_unlike_those_of_the_training_are_refused_by_what_they_lack(name):
    model = tiny().fit(STORE, LABELS)
    with pytest.raises(DataError, match=f"the graphs have no {name}, which the model needs"):
        model.predict(replace(STORE, **{name: None}, **({"node_label_names": ()} if name == "node_labels" else {})))


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = tiny().fit(STORE, LABELS)
    before = model.predict(STORE).tolist()
    with pytest.raises(DataError, match="at least two classes"):
        model.fit(STORE, ["one"] * 40)
    with pytest.raises(ZeroDivisionError):
        model.set_params(callback=lambda _: 1 / 0).fit(STORE, ["other", "names"] * 20)
    assert model.predict(STORE).tolist() == before
    assert model.classes_.tolist() == ["even", "odd"]
