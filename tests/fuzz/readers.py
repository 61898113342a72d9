"""The readers of data files as fuzzing targets."""

import gzip
import importlib.util
import io
import json
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from typer.main import get_command

from sopool.cli import app
from sopool.cli.config_file import read_config
from sopool.data.formats.atoms import ATOM_COLUMNS, BOND_COLUMNS
from sopool.data.formats.gin import read_gin
from sopool.data.formats.jsonl import read_jsonl
from sopool.data.formats.molecules import read_sdf, read_smiles_csv, smiles_to_store
from sopool.data.formats.packed import load_graphs, save_graphs
from sopool.data.formats.rows import TrainingColumns, row_options
from sopool.data.formats.tu import read_tu
from sopool.data.graphs import PackedGraphs, check_values
from sopool.data.names import Needed
from sopool.data.pack import Graph, pack
from sopool.data.sources.stream import GraphChunk, stream_graphs
from sopool.errors import SettingError, UserError
from tests.fuzz.registry import file_of, target
from tests.helpers.json_lines import LINE
from tests.helpers.tu_files import SMALL

JSON = "".join(json.dumps(line) + "\n" for line in (LINE, LINE | {"id": 7})).encode()
JSON_WORDS = (
    *(f'"{key}":'.encode() for key in LINE),
    b'{"charge":',
    b"null",
    b"true",
    b"NaN",
    b"1e999",
    b"[[",
    b"{}",
    b'"\\ud800"',
)

LABELS = (LINE | {"label": [0.5, None]}, LINE | {"id": 7, "label": [1e38, -3]}, LINE | {"label": 0.25, "id": 8})
JSON_TARGETS = "".join(json.dumps(line) + "\n" for line in LABELS[:2]).encode()
JSON_NUMBERS = "".join(json.dumps(line | {"id": i}) + "\n" for i, line in enumerate(LABELS[2:] * 2)).encode()

CSV_TARGETS = b"smiles,a,label\nCCO,0,0.5\nC,,1e-3\nCC,true,7\n"
CSV = b'name,SMILES,label\nethanol,CCO,0\n"benzene, pure",c1ccccc1,1\nsalt,[Na+].[Cl-],0\n'
CSV_WORDS = (b'"', b'""', b";", b"\t", b"\r", b"smiles", b"label", b"nan", b"%(123)", b"[13CH4]")

TITLE = b"ethanol\n  made by hand\n\n"
V2000 = (
    TITLE
    + b"  3  2  0  0  0  0  0  0  0  0999 V2000\n"
    + b"    0.0000    0.0000    0.0000 C   0  0\n" * 2
    + b"    1.0000    0.0000    0.0000 O   0  0\n"
    + b"  1  2  1  0\n  2  3  1  0\nM  CHG  1   3  -1\nM  END\n> <label>\nyes\n\n$$$$\n"
)
V3000 = (
    TITLE
    + b"  0  0  0     0  0            999 V3000\n"
    + b"M  V30 BEGIN CTAB\nM  V30 COUNTS 2 1 0 0 0\n"
    + b"M  V30 BEGIN ATOM\nM  V30 1 C 0 0 0 0\nM  V30 2 O 1 -\nM  V30 0 0 0\nM  V30 END ATOM\n"
    + b"M  V30 BEGIN BOND\nM  V30 1 2 1 2\nM  V30 END BOND\nM  V30 END CTAB\nM  END\n"
    + b"> <label>\nno\n\n$$$$\n"
)
SDF_WORDS = (b"$$$$\n", b"M  END\n", b"M  V30 ", b"V3000", b"COUNTS", b"BEGIN BOND", b"> <label>\n", b"999", b"-\n")

SMILES = (b"CC(=O)Oc1ccccc1C(=O)O", b"[Na+].[Cl-]", b"C12C3C4C1C5C2C3C45", b"N->[Fe]", b"C/C=C/[C@@H](N)O |$;;;;R1$|")
SMILES_WORDS = (b"%10", b"%(100)", b"[nH]", b"[2H]", b"[*:1]", b"|", b"c1", b"(", b")", b".", b"->", b"@@", b"=", b"$")

GIN = b"2\n3 1\n0 2 1 2\n5 1 0\n0 1 0\n2 -1\n0 1 1\n5 1 0\n"
GIN_ATTRIBUTES = b"1\n2 0\n0 1 1 0.5 1e-3\n1 1 0 2 -7\n"
NUMBERS = (b"0", b"-1", b"9" * 30, b"1e400", b"nan", b"inf", b"0x1", b"1_0", b".5", b", ")

FILE_MARK = b"=== "


TU_TARGETS = {"graph_attributes": "0.5, nan\n-1e3, 7\n"}
TU_COLUMNS = {
    "node_labels": "0, 7\n1, -3\n" * 2 + "0, 0\n",
    "edge_labels": "1,2,3\n" * 6,
    "edge_attributes": "0.5,1\n" * 6,
}


def tu_text(files: dict[str, str]) -> bytes:
    """Files as one text, each after a line with its name."""
    return b"".join(FILE_MARK + f"SMALL_{kind}.txt\n{text}".encode() for kind, text in files.items())


def tu_zip_of(files: dict[str, str], method: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as out:
        for kind, text in files.items():
            # Of a fixed date: the same seed in every run.
            member = zipfile.ZipInfo(f"SMALL/SMALL_{kind}.txt")
            member.compress_type = method
            out.writestr(member, text)
    return packed.getvalue()


def graphs_bytes(store: PackedGraphs) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "seed.graphs")
        save_graphs(store, path)
        return path.read_bytes()


GRAPHS = pack(
    [
        Graph(2, [(0, 1), (1, 0)], "a", ["x", "y"], [[0.5], [1.0]], ["single", "single"], None, [1.0, 2.0]),
        Graph(1, [], "b", ["x"], [[2.0]], [], None, []),
    ]
)
GRAPHS_COLUMNS = pack(
    [
        Graph(
            2,
            [(0, 1)],
            node_categories={"charge": [0, -1], "ring": ["no", "yes"]},
            edge_categories={"stereo": ["any"]},
            edge_attributes=[[0.5, -1]],
            graph_attributes={"heat": None, "size": 2},
        ),
        Graph(0, graph_attributes={"heat": 20.5, "size": 0}),
    ]
)
GRAPHS_TARGETS = pack([Graph(2, [(0, 1)], [0.5, None]), Graph(1, [], [1, 2])], target_names=["a", "b"])


@target(JSON, b"\xef\xbb\xbf" + JSON, JSON_TARGETS, JSON_NUMBERS, words=JSON_WORDS)
def json_lines(data: bytes) -> None:
    with file_of(data, "a.jsonl") as path:
        check_values(read_jsonl(path))


@target(gzip.compress(JSON, mtime=0))
def packed_json_lines(data: bytes) -> None:
    with file_of(data, "a.jsonl.gz") as path:
        check_values(read_jsonl(path))


@target(CSV, CSV.replace(b",", b";"), CSV_TARGETS, words=CSV_WORDS, needs="rdkit")
def csv_of_smiles(data: bytes) -> None:
    with file_of(data, "a.csv") as path:
        check_values(read_smiles_csv(path)[0])


@target(CSV_TARGETS, words=(*CSV_WORDS, *NUMBERS, b"true"), needs="rdkit")
def csv_of_targets(data: bytes) -> None:
    with file_of(data, "a.csv") as path, suppress(SettingError):  # a column may get lost
        check_values(read_smiles_csv(path, target_columns=["label", "a"])[0])


@target(CSV_TARGETS, words=(*CSV_WORDS, *NUMBERS, b"true"), needs="rdkit")
def csv_of_graph_attributes(data: bytes) -> None:
    with file_of(data, "a.csv") as path, suppress(SettingError):
        for chunk in stream_graphs(path, {"graph_attributes": ("a",)}, row_options(graph_columns=["a"])):
            if chunk.graphs is not None:
                check_values(chunk.graphs)


@target(V2000, V3000, V2000 + V3000, words=SDF_WORDS, needs="rdkit")
def sdf(data: bytes) -> None:
    with file_of(data, "a.sdf") as path:
        check_values(read_sdf(path, features="all", descriptors=["morgan"])[0])


@target(*SMILES, words=SMILES_WORDS, needs="rdkit")
def smiles(data: bytes) -> None:
    texts = ["C", data.decode("utf-8", "surrogateescape")]
    store, bad = smiles_to_store(texts)
    check_values(store)
    assert len(store) + len(bad) == 2
    more, worse = smiles_to_store(texts, features="all", descriptors=["rdkit2d", "morgan", "atom-pairs"])
    check_values(more)
    assert (len(more), worse) == (len(store), bad)


@target(tu_text(SMALL), tu_text(SMALL | TU_TARGETS), tu_text(SMALL | TU_COLUMNS), words=(FILE_MARK, *NUMBERS))
def tu_folder(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for part in data.split(FILE_MARK)[1:]:
            name, _, text = part.partition(b"\n")
            known = [f"SMALL_{kind}.txt" for kind in SMALL | TU_TARGETS if name == f"SMALL_{kind}.txt".encode()]
            for file in known:
                Path(folder, file).write_bytes(text)
        check_values(read_tu(folder))


@target(
    tu_zip_of(SMALL, zipfile.ZIP_DEFLATED), tu_zip_of(SMALL, zipfile.ZIP_LZMA), tu_zip_of(SMALL, zipfile.ZIP_STORED)
)
def tu_zip(data: bytes) -> None:
    with file_of(data, "a.zip") as path:
        check_values(read_tu(path))


@target(GIN, GIN_ATTRIBUTES, words=NUMBERS)
def gin_text(data: bytes) -> None:
    with file_of(data, "a.txt") as path:
        check_values(read_gin(path))


@target(
    graphs_bytes(GRAPHS),
    graphs_bytes(GRAPHS_TARGETS),
    graphs_bytes(GRAPHS_COLUMNS),
    words=(b'"', b"[", b"0", b'"I64"', b'"F32"', b'"classes"'),
)
def graphs_file(data: bytes) -> None:
    with file_of(data, "a.graphs") as path:
        check_values(load_graphs(path))


def headed(data: bytes) -> bytes:
    """The bytes of a .graphs file as its header and its arrays, parted by a mark."""
    size = int.from_bytes(data[:8], "little")
    return data[8 : 8 + size] + FILE_MARK + data[8 + size :]


@target(
    headed(graphs_bytes(GRAPHS)),
    headed(graphs_bytes(GRAPHS_TARGETS)),
    headed(graphs_bytes(GRAPHS_COLUMNS)),
    words=(b'\\"[[', b"]", b"1e9", b"null", b"U8", b"I16", b"I32", b"F64", b"[0,8]", b"-"),
)
def graphs_header(data: bytes) -> None:
    """Put the length of the header in front of it: changes to a whole file mostly make it wrong."""
    header, _, arrays = data.partition(FILE_MARK)
    graphs_file(len(header).to_bytes(8, "little") + header + arrays)


@target(JSON, JSON_TARGETS, CSV, CSV_TARGETS, b"CCO ethanol\n\nC\n", words=(*JSON_WORDS, *CSV_WORDS), needs="rdkit")
def standard_input(data: bytes) -> None:
    """Rows may be bad, each by itself; what comes of the others can be used. A table may lack a column of a model."""
    needed: dict[str, Needed] = {"node_categories": ("charge",), "edge_attributes": 1, "graph_attributes": ("heat",)}
    chunks: list[GraphChunk] = []
    for fields, refusals in (({}, ()), (needed, (UserError,))):
        with patch.object(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data))), suppress(*refusals):
            chunks += stream_graphs("-", fields)
    for chunk in chunks:
        assert len(chunk.rows) == len(chunk.ids) == len(chunk.labels)
        if chunk.graphs is not None:
            check_values(chunk.graphs)


NEEDED = {
    "node_categories": tuple(ATOM_COLUMNS),
    "edge_categories": tuple(BOND_COLUMNS),
    "graph_attributes": ("morgan 0", "rdkit2d MolWt"),
}
"""What a model may need of molecules."""


def streamed(data: bytes, name: str) -> None:
    with file_of(data, name) as path:
        training = TrainingColumns("smiles", None, ("label", "a"))
        for chunk in stream_graphs(
            path, NEEDED, row_options(training=training, keep=True), also=["node_labels", "edge_labels"]
        ):
            assert len(chunk.rows) == len(chunk.cells) == (0 if chunk.graphs is None else len(chunk.graphs))
            assert all(len(cells.names) == len(cells.values) for cells in chunk.cells)


@target(V2000, V3000, V2000 + V3000, words=SDF_WORDS, needs="rdkit")
def streamed_sdf(data: bytes) -> None:
    streamed(data, "a.sdf")


def parquet_files() -> tuple[bytes, ...]:
    """Tables of molecules as Parquet files, if pyarrow is installed."""
    if importlib.util.find_spec("pyarrow") is None:
        return ()
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    columns = {
        "smiles": ["CCO", "C", None],
        "label": [0.5, None, 7.0],
        "a": [True, False, None],
        "id": [b"x", b"\xff", b""],
    }
    files = []
    for compression in ("none", "snappy"):
        out = io.BytesIO()
        parquet.write_table(arrow.table(columns), out, compression=compression)
        files.append(out.getvalue())
    return tuple(files)


@target(*parquet_files(), words=(b"PAR1", b"smiles", b"CCO", b"\x15\x00"), needs="pyarrow")
def streamed_parquet(data: bytes) -> None:
    with suppress(SettingError):  # a column may get another name
        streamed(data, "a.parquet")


@target(CSV, CSV_TARGETS, words=CSV_WORDS, needs="rdkit")
def streamed_csv(data: bytes) -> None:
    streamed(data, "a.csv")


CONFIG = b"""[fit]
data = "MUTAG"
hidden = [16, 32]
lr = 0.01
class-weight = "balanced"
keep-copies-together = true
[runs.list]
all = true
"""
CONFIG_WORDS = (
    b"[fit]",
    b"[runs]",
    b"[[fit]]",
    b"epochs = ",
    b"1979-05-27",
    b"inf",
    b"nan",
    b'"""',
    b"{a.b = 1}",
    b"0x7f",
)


@target(CONFIG, b"", words=CONFIG_WORDS)
def config_file(data: bytes) -> None:
    with file_of(data, "a.toml") as path:
        read_config(path, get_command(app))
