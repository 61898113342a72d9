"""Numbers given beside molecules in columns of a CSV or properties of an SDF file."""

import pytest

from sopool.data import load
from sopool.data.formats.rows import row_options
from sopool.data.sources.find_graph import find_graph
from sopool.data.sources.stream import stream_graphs
from sopool.errors import SettingError

COLUMNS = ("label", "Temperature", "pressure")
ROWS = (("yes", "20.5", "1"), ("no", "-3", ""), ("yes", "1e3", "nan"))


def csv_text(rows):
    return "\n".join(",".join(row) for row in (("smiles", *COLUMNS), *(("C", *row) for row in rows)))


def sdf_text(rows):
    """Records of a single atom; an empty cell is a property that is not there."""
    atom = "methane\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n" + "    0.0000" * 3 + " C   0  0\nM  END\n"
    return "".join(
        atom + "".join(f"> <{name}>\n{cell}\n\n" for name, cell in zip(COLUMNS, row, strict=True) if cell) + "$$$$\n"
        for row in rows
    )


@pytest.fixture(params=["csv", "sdf"])
def table(request, tmp_path):
    """Write rows to a file of molecules and return its path."""
    pytest.importorskip("rdkit", reason="needs RDKit, the extra chem")

    def write(*rows):
        path = tmp_path / f"a.{request.param}"
        path.write_text((csv_text if request.param == "csv" else sdf_text)(rows))
        return path

    return write


def numbers(store):
    return [[None if value != value else value for value in row] for row in store.graph_attributes.tolist()]


def test_columns_become_graph_attributes(table):
    path = table(*ROWS)
    assert load(path).graph_attributes is None
    store = load(path, graph_columns=["temperature", "pressure"])
    assert store.graph_attribute_names == ("temperature", "pressure")
    assert numbers(store) == [[20.5, 1], [-3, None], [1000, None]]
    assert store.classes == ("no", "yes")
    assert load(path, labelled=False, graph_columns=["pressure"]).graph_attribute_names == ("pressure",)


def test_what_is_streamed_is_what_is_read_at_once(table):
    path = table(*ROWS)
    fields = {"graph_attributes": ("temperature",)}
    (chunk,) = stream_graphs(path, fields, row_options(graph_columns=["temperature", "pressure"]))
    assert numbers(chunk.graphs) == [[20.5], [-3], [1000]]
    assert chunk.labels == ["yes", "no", "yes"]
    found = find_graph(path, "2", fields, row_options(graph_columns=["temperature"]))
    assert numbers(found.graph)[0][0] in (20.5, -3)  # lines of a CSV begin with its names


def test_numbers_go_with_targets(table):
    store = load(table(*ROWS), target_columns=["temperature"], graph_columns=["pressure"])
    assert store.target_names == ("Temperature",)
    assert numbers(store) == [[1], [None], [None]]


def test_a_molecule_without_a_number_is_skipped(table):
    path = table(("yes", "warm", "1"), ("no", "inf", "2"), ("no", "7", "3"))
    with pytest.warns(
        UserWarning, match="2 of 3 molecules skipped.*graph attribute 'temperature' is 'warm', expected a"
    ):
        assert numbers(load(path, graph_columns=["temperature"])) == [[7]]
    (chunk,) = stream_graphs(path, {}, row_options(graph_columns=["temperature"]))
    assert ["'inf', expected a finite number" in one.reason for one in chunk.bad] == [False, True]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"graph_columns": "temperature"}, "graph_columns='temperature' is a string, expected a list"),
        ({"graph_columns": ["pressure"] * 2}, "graph_columns=.* names a column twice"),
        ({"graph_columns": ["pressure", "Pressure"]}, "graph_columns names the column 'pressure' twice"),
        ({"graph_columns": ["presure"]}, r"there is no column 'presure' \(graph_columns\).*Did you mean 'pressure'"),
        ({"graph_columns": ["Label"]}, "graph_columns names 'label', which is to be predicted"),
        (
            {"target_columns": ["pressure"], "graph_columns": ["pressure"]},
            "graph_columns names 'pressure', which is to be predicted",
        ),
    ],
)
def test_columns_that_cannot_be_used(table, asked, message):
    with pytest.raises(SettingError, match=message):
        load(table(*ROWS), **asked)


def test_sources_without_columns(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"nodes": 1, "edges": []}\n')
    for read in (load, lambda path, **asked: list(stream_graphs(path, {}, row_options(**asked)))):
        with pytest.raises(SettingError, match=r"graph_columns=\['heat'\] was given, but this source has no columns"):
            read(path, graph_columns=["heat"])
    with pytest.raises(SettingError, match="graph_columns"):
        load("MUTAG", graph_columns=["heat"])
