"""Require an example of every public class and function, and run the examples of the whole package."""

import doctest
import importlib
import inspect
import pkgutil
import warnings

import pytest

import sopool

PACKAGES = ["sopool.data", "sopool.estimator", "sopool.experiments", "sopool.models", "sopool.nn", "sopool.ops"]
MODULES = ["sopool", *(module.name for module in pkgutil.walk_packages(sopool.__path__, "sopool."))]
NEEDS = {"sopool.ops.triton": "triton", "sopool.experiments.executors.ray": "ray", "sopool.ops.numba": "numba"}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_an_example(package):
    public = importlib.import_module(package)
    named = {name: getattr(public, name) for name in public.__all__}
    called = {name: one for name, one in named.items() if inspect.isroutine(one) or inspect.isclass(one)}
    assert called
    assert [name for name, one in called.items() if "Examples:\n" not in (one.__doc__ or "")] == []


@pytest.mark.parametrize("package", sorted({".".join(name.split(".")[:2]) for name in MODULES}))
def test_the_examples_run(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in MODULES:
        if name != package and (package == "sopool" or not name.startswith(f"{package}.")):
            continue
        if name.endswith("__main__"):
            continue
        for start, needed in NEEDS.items():
            if name.startswith(start):
                pytest.importorskip(needed)
        for example in finder.find(importlib.import_module(name)):
            run(example)
    assert list(tmp_path.iterdir()) == []


def run(example):
    told = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner.run(example, out=told.append)
    assert not runner.failures, "".join(told)
