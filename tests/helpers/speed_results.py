"""Results as ``python -m benchmarks.speed`` might have found them."""

from benchmarks.speed.results import BankRow, ReadoutRow, Results

MACHINE = {
    "device": "A [fast] GPU",
    "threads": 8,
    "torch": "2.6.0",
    "triton": None,
    "python": "3.12.1",
    "platform": "X",
}


def readout_row(like="NCI1", readout="bimap", backward=False, way="sopool", milliseconds=0.25):
    graphs = 32_768
    nodes = 1_100_000
    moved = 10**9 * (3 if backward else 1)
    return ReadoutRow(like, graphs, nodes, readout, backward, way, milliseconds, moved / 4e9, moved, 1.125)


def bank_row(scale="models", data="MUTAG", way="sopool", models=1, graphs=32, width=32, nodes=18.0, seconds=0.02):
    return BankRow(
        scale, data, way, models, graphs, width, nodes, 50, 1, 0.75 * seconds, 0.25 * seconds, 3.5e-5, 12_300_000
    )


def some_results():
    """Two readouts on two sizes; three scales, two data sets on one of them; a rival left out once."""
    rows = [
        readout_row(like, readout, backward, way, (0.25 if way == "sopool" else 1.5) * (1 + 2 * backward))
        for like in ("NCI1", "REDDIT-BINARY")
        for readout, usual in (("bimap", "padded"), ("attn", "index_add"))
        for way in ("sopool", usual)
        for backward in (False, True)
    ]
    bank = []
    for data in ("MUTAG", "NCI1 $a$"):
        bank += [bank_row(data=data, models=models, seconds=0.02 / models) for models in (1, 10, 60)]
        bank += [bank_row(data=data, way="PyG", seconds=0.44), bank_row(data=data, way="padded", seconds=0.01)]
    bank += [bank_row("width", width=width, models=60, way=way) for width in (16, 64) for way in ("sopool", "PyG")]
    bank += [bank_row("nodes", "random graphs", nodes=nodes, models=60) for nodes in (10.0, 300.0)]
    notes = ["padded, MUTAG, models: 10: left out, more memory than there is"]
    return Results(dict(MACHINE), rows, 4e12, bank, 5e13, notes)
