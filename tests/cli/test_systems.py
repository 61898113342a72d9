import json

from sopool.experiments.systems import SYSTEMS
from tests.cli.conftest import TINY


def test_all_systems_are_listed(call):
    shown = call("systems")
    assert shown.code == 0
    for name in SYSTEMS:
        assert name in shown.out
    listed = {one["name"]: one for one in json.loads(call("systems", "--json").out)}
    assert list(listed) == list(SYSTEMS)
    assert listed["wl"]["settings"][0] == {"iterations": 0, "normalised": True}
    assert listed["wl"]["path"] == [0.1, 1.0, 10.0, 100.0]
    assert all(one["sees"] and one["paper"] and one["cost"] for one in listed.values())


def test_systems_are_evaluated_beside_networks(call):
    options = ["--system", "size,gcn+sum", "--pool", "sum", "--protocol", "fair,last-epoch", *TINY]
    shown = call("evaluate", "MUTAG", *options)
    assert shown.code == 0, shown.err
    for words in ("Gain over sum", "gcn+sum", "its path: size C 0.01, 0.1, 1, 10.", "last-epoch"):
        assert words in " ".join(shown.out.split())
    again = call("evaluate", "MUTAG", *options)
    assert "Nothing to train" in again.out
    found = json.loads(call("evaluate", "MUTAG", *options, "--json").out)
    assert [(one["pool"], one["gnn"]) for one in found] == [("sum", "gin-0"), ("size", None), ("gcn+sum", "gcn")]
    listed = call("runs").out
    assert "4 strengths" in listed
    assert call("report", "runs", "-o", "tables.csv").code == 0


def test_what_cannot_be(call):
    shown = call("evaluate", "MUTAG", "--system", "hisogram", *TINY)
    assert shown.code == 2
    assert "Did you mean 'histogram'?" in shown.err
