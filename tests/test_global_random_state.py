"""No global random generator is seeded, read or advanced: not in the source, and not when the package is at work."""

import ast
import random
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import sopool
from sopool.data import load
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.reproduce.paper.figure2 import compare_examples
from sopool.experiments.statistics import signed_rank_test
from sopool.experiments.systems import CONTROLS, run_control
from sopool.models.config import Setting
from sopool.nn.registry import about_all
from sopool.report.explanation.graph_picture import layout
from sopool.training.bank.bank import new_model
from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.model_cases import CASES

ROOT = Path(sopool.__file__).parent
SEEDS = ("seed", "manual_seed", "initial_seed", "get_rng_state", "set_rng_state", "default_generator")
GLOBAL = {f"torch.{name}" for name in (*SEEDS, "random")} | {"random", "numpy.random.mtrand"}
GLOBAL |= {f"torch.cuda.{name}{every}" for name in SEEDS for every in ("", "_all")}
GLOBAL |= {"torch_geometric.seed_everything", "torch_geometric.seed"}
OWN = ("Generator", "default_rng", "RandomState", "SeedSequence", "Philox", "PCG64", "BitGenerator")
"""Of numpy.random: what makes a generator of one's own. Everything else there is or uses the global one."""


def names_used(tree):
    """The full names of everything imported or reached through an import, such as ``numpy.random.rand``."""
    imports = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imports[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else None
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}", node.lineno
    for node in ast.walk(tree):
        parts = []
        inner = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if parts and isinstance(inner, ast.Name) and inner.id in imports:
            yield ".".join([imports[inner.id] or inner.id, *reversed(parts)]), node.lineno


def is_global(name):
    if name.startswith("numpy.random."):
        return name.split(".")[2] not in OWN
    return any(name == one or name.startswith(f"{one}.") for one in GLOBAL)


def global_uses(source):
    return sorted({f"{name}, line {line}" for name, line in names_used(ast.parse(source)) if is_global(name)})


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.manual_seed(0)",
        "import torch\nwith torch.random.fork_rng(): pass",
        "from torch import manual_seed",
        "from torch.random import fork_rng",
        "import torch as t\nt.cuda.manual_seed_all(1)",
        "import numpy as np\nnp.random.shuffle([])",
        "import numpy\nnumpy.random.seed(0)",
        "from numpy.random import rand",
        "from numpy import random\nrandom.rand()",
        "import random\nrandom.random()",
        "from random import choice",
        "from torch_geometric import seed_everything",
    ],
)
def test_the_search_finds(source):
    assert global_uses(source)


def test_the_search_leaves_generators_of_ones_own():
    assert not global_uses(
        "import numpy as np, torch\nnp.random.default_rng(0).random()\ntorch.Generator().manual_seed(0)"
    )
    assert not global_uses("def f(random):\n    return random.integers(3)")


def test_no_source_uses_a_global_generator():
    files = list(ROOT.rglob("*.py"))
    found = {str(path.relative_to(ROOT)): global_uses(path.read_text(encoding="utf-8")) for path in files}
    assert len(files) > 200
    assert not {path: uses for path, uses in found.items() if uses}


class NothingGlobal(TorchDispatchMode):
    """Fails where an operator draws from PyTorch's global generator, which may be restored later unnoticed."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = kwargs or {}
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        meta = any(tensor.is_meta for tensor in tensors) or str(given.get("device")) == "meta"
        own = any(isinstance(value, torch.Generator) for value in (*args, *given.values()))
        assert torch.Tag.nondeterministic_seeded not in func.tags or own or meta, func
        return func(*args, **given)


def states():
    kind, keys, *rest = np.random.get_state()
    return torch.get_rng_state().tolist(), (kind, keys.tolist(), *rest), random.getstate()


@pytest.fixture
def nothing_global():
    before = states()
    with NothingGlobal():
        yield
    assert states() == before


def test_new_models_of_every_kind(nothing_global):
    for config in CASES.values():
        new_model(RunConfig("", "", "", config, 0), 4, 2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("pool", "blocks"), [("sopool-bimap", 0), ("eigenpool", 0), ("diffpool", 2)])
def test_a_classifier_at_work(pool, blocks, nothing_global, tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path / "cache"))
    model = tiny(pool=pool, blocks=blocks, epochs=1, steps=1).fit(STORE, LABELS)
    model.predict_proba(STORE)
    model.transform(STORE)
    model.explain(STORE[3])
    model.save(tmp_path / "model")
    type(model).load(tmp_path / "model", device="cpu").predict(STORE)


def test_a_fit_without_a_random_state(nothing_global):
    one, two = (tiny(random_state=None, epochs=1, steps=1).fit(STORE, LABELS).predict_proba(STORE) for _ in range(2))
    assert not np.array_equal(one, two)


def test_an_evaluation(nothing_global, tmp_path):
    request = Request(["sopool-bimap", "sum"], ["fair"], settings=[Setting(hidden=4)], epochs=1, folds=2, steps=1)
    Evaluator(load("MUTAG")[::4], request, RunStore(tmp_path)).evaluate(workers=1)


def test_the_figure_and_the_list_of_poolings(nothing_global):
    assert compare_examples()
    assert [one.to_json(8) for one in about_all()]


def test_significance_and_the_layout_of_graphs(nothing_global):
    for differences in (np.arange(1.0, 8.0), np.arange(1.0, 40.0)):
        signed_rank_test(differences)
    layout(nx.gnp_random_graph(12, 0.2, seed=0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONTROLS)
def test_controls(name, nothing_global):
    run_control(name, load("MUTAG")[::6], folds=2)
