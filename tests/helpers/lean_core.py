"""Use all that works without an extra, and ask for some of what does not.

Not a module for tests: ``tests/test_extras.py`` runs it in a process that hides the optional packages, and
``tests/check_wheel.py`` where they are not installed.
"""

from functools import partial
from importlib import import_module
from pkgutil import iter_modules

import torch

import sopool
from sopool.errors import MissingPackageError
from sopool.nn import POOLINGS, READOUTS, make_pooling, make_readout

EXTRAS = {
    "sopool.GraphClassifier": "estimator",
    "sopool.cli": "cli",
    "sopool.data": "estimator",
    "sopool.estimator": "estimator",
    "sopool.experiments": "estimator",
    "sopool.models": "estimator",
    "sopool.objectives": "estimator",
    "sopool.report": "cli",
    "sopool.training": "estimator",
}
"""What needs more than the core, and the extra that its error must name."""

x = torch.randn(9, 4, requires_grad=True)
batch = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1, 1])
edge_index = torch.tensor([[0, 1, 1, 2, 3, 4, 5, 6], [1, 0, 2, 1, 4, 3, 6, 5]])
for name in READOUTS:
    out = make_readout(name, 4)(x, batch)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert out.shape[0] == 2, name
    assert gradient.isfinite().all(), name
for name in POOLINGS:
    pooling = make_pooling(name, 4)
    if name != "eigenpool":  # its clusters are computed with SciPy and scikit-learn
        assert pooling(x, edge_index, batch=batch).x.isfinite().all(), name

steps = {module.name: partial(import_module, module.name) for module in iter_modules(sopool.__path__, "sopool.")}
steps["sopool.GraphClassifier"] = partial(getattr, sopool, "GraphClassifier")
said = {}
for name, step in steps.items():
    try:
        step()
    except MissingPackageError as error:
        said[name] = str(error)
assert said.keys() == EXTRAS.keys(), said
assert all(f": pip install 'sopool[{extra}]'." in said[name] for name, extra in EXTRAS.items()), said
