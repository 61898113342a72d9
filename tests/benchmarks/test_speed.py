import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode
from torch_geometric.data import Batch as PygBatch

from benchmarks.rivals import RANK, padded, pyg
from benchmarks.sizes import QUANTILES, draw_sizes
from benchmarks.speed import __main__ as command
from benchmarks.speed import bank, readouts, timing
from benchmarks.speed.jobs import Point, plan_points, prepare, random_graphs
from benchmarks.speed.results import Results
from benchmarks.speed.run import Request, run
from benchmarks.speed.timing import Effort
from sopool.data.sources.boxed import load_boxed
from sopool.errors import DataError, SettingError
from sopool.models import FlatClassifier, ModelConfig
from sopool.training.bank.batching import GraphTables
from tests.helpers.speed_results import some_results

TINY = Effort(share=0.01, repeats=2, epochs=1, steps=2)


@pytest.fixture
def small_machine(monkeypatch):
    """Speeds are measured with arrays so small that it takes no time."""
    monkeypatch.setitem(timing.COPIED, "cpu", 1 << 12)
    monkeypatch.setitem(timing.PRODUCT, "cpu", 16)


@pytest.fixture(scope="module")
def mutag():
    return prepare(load_boxed("MUTAG"), "cpu")


def test_sizes_are_those_of_the_data_set():
    for like, quantiles in QUANTILES.items():
        sizes = draw_sizes(like, 500)
        assert (sizes.min() >= quantiles[0]) & (sizes.max() == quantiles[-1])
        assert abs(np.median(sizes) / quantiles[5] - 1) < 0.25
        assert (sizes == draw_sizes(like, 500)).all()


@pytest.mark.parametrize("backward", [False, True])
def test_all_ways_compute_the_same_readout(backward):
    batch = readouts.make_batch("MUTAG", 5, "cpu", channels=6)
    batch = batch._replace(x=batch.x.detach().double().requires_grad_())
    for case in readouts.make_cases("cpu", channels=6, rank=3):
        (weight,) = case.weights
        weight.data = weight.data.double()
        graphs = batch.x.split(batch.ptr.diff().tolist())
        if case.readout == "bimap":
            expected = torch.stack([(weight.t() @ h.t() @ h @ weight).flatten() for h in graphs])
        else:
            expected = torch.stack([(h.t() @ h @ weight).flatten() for h in graphs])
        found = case.pool(batch)
        assert found.shape == (5, case.outputs)
        torch.testing.assert_close(found, expected)
        if backward:
            pair = [torch.autograd.grad(out.square().sum(), [batch.x, weight]) for out in (found, expected)]
            torch.testing.assert_close(*pair)


def test_the_floor_is_what_must_move():
    batch = readouts.make_batch("MUTAG", 7, "cpu")
    h = batch.x.numel() * 4
    s = 7 * 1024 * 4
    assert readouts.floor_bytes(batch, 1024, backward=False) == h + s
    assert readouts.floor_bytes(batch, 1024, backward=True) == 2 * h + h + s + s


def test_memory_of_a_readout_is_told_against_its_inputs_and_outputs():
    batch = readouts.make_batch("MUTAG", 50, "cpu")
    for case in readouts.make_cases("cpu"):
        for backward in (False, True):
            row = readouts.measure_case(case, "MUTAG", batch, backward, 1e9, "cpu", 1)
            assert 1 <= row.memory < 10
            assert row.floor_milliseconds == pytest.approx(row.floor_bytes / 1e6)


def test_peak_memory_counts_what_is_there_at_one_time():
    x = torch.ones(1000)

    def work():
        y = x + x
        z = y + y  # here: two arrays
        del y
        return z + z  # and here again

    assert timing.peak_bytes(work, "cpu") == 8000


@given(st.integers(1, 5))
def test_every_repeat_is_a_call_after_one_to_warm_up(repeats):
    calls = []
    timing.median_seconds(lambda: calls.append(0), "cpu", repeats)
    assert len(calls) == repeats + 1


def copy_weights(ours, pyg, dense, m):
    """The weights of one of our models into PyG's, and into place m of the padded ones."""
    linears = [layer.nn[at] for layer in pyg.layers for at in (0, 3)]
    norms = [layer.nn[at] for layer in pyg.layers for at in (1, 4)]
    blocks = [block for layer in ours.gnn.layers for block in layer]
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.uniform_(-0.5, 0.5)
        for i, (block, linear, norm) in enumerate(zip(blocks, linears, norms, strict=True)):
            linear.weight.copy_(block.weight.t())
            linear.bias.zero_()
            dense.linears[i][m] = block.weight
            for mine, theirs, both in (
                (block.scale, norm.weight, dense.norms[i].weight),
                (block.shift, norm.bias, dense.norms[i].bias),
            ):
                theirs.copy_(mine)
                both[m, 0] = mine
        pyg.bimap.weight.copy_(ours.readouts[0].weight.t())
        dense.bimap[m] = ours.readouts[0].weight
        pyg.head.load_state_dict(ours.heads[0].state_dict())
        dense.head[m] = ours.heads[0].weight.t()
        dense.head_bias[m, 0] = ours.heads[0].bias


def test_all_ways_train_the_same_model(mutag, monkeypatch):
    for module in (pyg, padded):
        monkeypatch.setattr(module, "DROPOUT", 0.0)
    store = mutag.store
    width = mutag.features.width
    tables = GraphTables.build(store, mutag.features)
    graphs = torch.stack([torch.arange(6), torch.arange(180, 186)])
    every = pyg.make_graphs(store, mutag.features.rows().double(), store.labels)
    dense = padded.PaddedBank(store, mutag.features, [np.arange(9)] * 2, 4, 6, 1, "cpu")
    dense.model.double()
    dense.x = dense.x.double()
    dense.mask = dense.mask.double()
    dense.adjacency = dense.adjacency.double()
    for m, some in enumerate(graphs):
        ours = FlatClassifier(ModelConfig(hidden=4, dropout_on="logits"), width, 2).double()
        theirs = pyg.Model(width, 2, 4).double()
        copy_weights(ours, theirs, dense.model, m)
        batch = tables.batch(some.unsqueeze(0))
        data = PygBatch.from_data_list([every[g] for g in some])
        for model in (ours, theirs, dense.model):
            model.train()
        scores = [ours(batch.x.double(), batch.neighbors, batch.ptr), theirs(data), dense(graphs)[m]]
        labels = store.labels[some]
        gradients = [F.cross_entropy(one, labels) for one in scores]
        weights = [ours.readouts[0].weight, theirs.bimap.weight, dense.model.bimap]
        gradients = [torch.autograd.grad(loss, weight)[0] for loss, weight in zip(gradients, weights, strict=True)]
        for model in (ours, theirs, dense.model):
            model.eval()
        looked = [ours(batch.x.double(), batch.neighbors, batch.ptr), theirs(data), dense(graphs)[m]]
        for found in (scores, looked, [gradients[0], gradients[1].t(), gradients[2][m]]):
            torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(found[2], found[0], rtol=1e-9, atol=1e-9)
        for norm in dense.model.norms:  # the next model's pass is the first one for all
            norm.mean.zero_()
            norm.variance.fill_(1)


def test_rivals_learn(mutag):
    trains = [split.train for split in mutag.splits(Point(2))]
    dense = padded.PaddedBank(mutag.store, mutag.features, trains, 8, 32, 30, "cpu")
    losses = [dense.train() for _ in range(4)]
    assert losses[-1] < 0.9 * losses[0]
    scores = dense.score()
    assert scores.shape == (2, 188, 2)
    labels = mutag.store.labels.numpy()
    assert (scores.argmax(2) == labels).mean() > 0.7

    alone = bank.pyg_trainer(mutag, Point(1, width=8, steps=60))
    train, test = alone.epoch()
    assert train > 0.7
    assert 0 <= test <= 1


def test_scores_in_pieces_are_the_scores(mutag, monkeypatch):
    dense = padded.PaddedBank(mutag.store, mutag.features, [np.arange(40)] * 2, 4, 8, 1, "cpu")
    whole = dense.score()
    monkeypatch.setattr(padded, "TOGETHER", 1)
    np.testing.assert_allclose(dense.score(), whole, atol=1e-5)


def test_operations_are_counted_as_pytorch_counts_them():
    """On graphs of one size nothing is padded. PyG computes two gradients that nobody needs."""
    job = prepare(random_graphs(9, graphs=20), "cpu")
    point = Point(1, graphs=5, width=6, steps=1)
    every = pyg.make_graphs(job.store, job.features.rows(), job.store.labels)
    model = pyg.Model(job.features.width, 2, 6)
    some = PygBatch.from_data_list(every[:5])
    with FlopCounterMode(display=False) as trained:
        F.cross_entropy(model(some), some.y).backward()
    with FlopCounterMode(display=False) as scored, torch.no_grad():
        model.eval()(PygBatch.from_data_list(every))
    spare = 2 * 5 * 9 * (job.features.width * RANK + RANK**2)
    assert job.operations(point) == trained.get_total_flops() - spare + scored.get_total_flops()


def test_random_graphs():
    store = random_graphs(10, graphs=12)
    assert store.sizes.tolist() == [10] * 12
    assert store.labels.bincount().tolist() == [6, 6]
    for graph in range(12):
        edges = {tuple(edge) for edge in store[graph].edge_index.t().tolist()}
        assert len(edges) == store[graph].num_edges
        assert all(source != target and (target, source) in edges for source, target in edges)
        assert len(edges) >= 20


def test_points_of_each_scale(mutag):
    points = [point for _, point in plan_points([mutag.store], "models", [1, 3], 9, "cpu")]
    assert points == [Point(1), Point(3)]
    points = [point for _, point in plan_points([mutag.store], "width", [1, 3], 9, "cpu", steps=2)]
    assert points == [Point(9, width=width, steps=2) for width in (16, 32, 64, 128)]
    few = random_graphs(5, graphs=30)
    points = [point for _, point in plan_points([few], "graphs", [1], 2, "cpu")]
    assert [point.graphs for point in points] == [8, 27, 27]  # nine tenths of them train
    jobs = [job for job, _ in plan_points([], "nodes", [1], 2, "cpu")]
    assert [job.nodes for job in jobs] == [10, 30, 100, 300]


def test_padding_is_not_tried_where_it_makes_no_sense(mutag):
    assert bank.reason_against(mutag, Point(10)) is None
    assert "too long on a CPU" in bank.reason_against(mutag, Point(1000))
    wide = prepare(random_graphs(4000, graphs=20), "cpu")
    assert "20 graphs padded to 4,000 nodes would take 1 GB" in bank.reason_against(wide, Point(1))


@pytest.mark.slow
def test_a_whole_run(mutag, small_machine, monkeypatch):
    monkeypatch.setattr(bank, "PATIENCE", 2e8)  # two models fit, three do not
    said = []
    threads = torch.get_num_threads()
    request = Request("cpu", [mutag.store], models=[2, 3], effort=TINY, profile=True)
    states = []
    for results in run(request, said.append):
        states.append((len(results.readouts), len(results.bank), len(results.profiles)))
    assert states == [(24, 0, 0), (24, 4, 0), (24, 4, 1)]
    assert torch.get_num_threads() == threads
    assert {(row.way, row.models, row.at) for row in results.bank} == {
        ("sopool", 2, 2.0),
        ("PyG", 1, 1.0),
        ("padded", 2, 2.0),
        ("sopool", 3, 3.0),
    }
    assert results.notes[0].startswith("padded, MUTAG, 18 nodes per graph, models: 3, graphs per batch: 32, width: 32")
    assert "aten::" in results.profiles[0]
    assert "bank: profile, MUTAG, 3 models" in said
    for row in results.readouts:
        assert min(row.milliseconds, row.floor_milliseconds) > 0
    for row in results.bank:
        assert min(row.train_seconds, row.score_seconds, row.floor_seconds, row.memory_bytes) > 0
        assert (row.steps, row.threads) == (2, 1)
    assert Results.from_json(json.loads(json.dumps(results.to_json()))) == results


@pytest.mark.slow
def test_a_rival_that_does_not_fit_is_left_out_and_we_are_not(mutag, small_machine, monkeypatch):
    def full(job, point):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setitem(bank.CONTENDERS, "padded", full)
    request = Request("cpu", [mutag.store], ["bank"], models=[1], effort=TINY)
    *_, results = run(request, lambda _: None)
    assert [row.way for row in results.bank] == ["sopool", "PyG"]
    assert results.notes[0].endswith("left out, more memory than there is")
    monkeypatch.setitem(bank.CONTENDERS, "sopool", full)
    with pytest.raises(torch.OutOfMemoryError):
        list(run(request, lambda _: None))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": ["readout"]}, "there is no part 'readout'. Did you mean 'readouts'"),
        ({"scales": ["edges"]}, "there is no scale 'edges'"),
        ({"models": [4, 0]}, "--models 0 is not possible"),
        ({"parts": ["readouts"], "profile": True}, "--profile needs the bank"),
    ],
)
def test_refused_requests(changes, message):
    with pytest.raises(SettingError, match=message):
        Request("cpu", **changes)


def test_results_are_read_as_they_were_written():
    saved = json.loads(json.dumps(some_results().to_json()))
    assert Results.from_json(saved) == some_results()
    with pytest.raises(DataError, match='"format" is not'):
        Results.from_json(saved | {"format": "sopool bench 0"})


def interrupted(error):
    def run(request, report):
        yield some_results()
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "The results so far follow"),
        (torch.OutOfMemoryError("CUDA out of memory.\nMore."), 1, "fewer --models. CUDA out of memory."),
    ],
)
def test_what_was_measured_before_an_interruption_is_kept(error, code, said, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(command, "run", interrupted(error))
    output = tmp_path / "figures.json"
    assert command.main(["--device", "cpu", "-o", str(output), "--plot", str(tmp_path / "pictures")]) == code
    shown = capsys.readouterr()
    assert said in shown.err
    assert "by width: MUTAG" in shown.out
    assert Results.from_json(json.loads(output.read_text())) == some_results()
    assert not (tmp_path / "pictures").exists()
    assert command.main(["--from", str(output), "--plot", str(tmp_path / "pictures")]) == 0
    assert capsys.readouterr().out == shown.out
    assert (tmp_path / "pictures" / "bank-models.svg").exists()
