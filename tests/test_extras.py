"""The core needs PyTorch, PyG and NumPy only; whatever needs more says which extra to install."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sopool
from sopool._runtime.packages import EXTRAS, require
from sopool.errors import MissingPackageError, UserError

ROOT = Path(__file__).resolve().parent.parent
CORE = {"numpy", "torch", "torch-geometric"}
WITHOUT = {"numba", "triton"}
"""Optional modules without which everything works, only slower."""
BROUGHT = {"filelock", "jinja2", "networkx"}
"""Modules that PyTorch and PyG install themselves, and import."""
OLDER = {"tomli"}
"""Modules that replace those of the standard library that an older Python lacks."""
OPTIONAL = sorted({module for own in EXTRAS.values() for module in own} - BROUGHT | {"numba"})


def run_without(modules, code, *arguments):
    hide = f"import sys; sys.modules.update(dict.fromkeys({modules}))\n"
    return subprocess.run([sys.executable, "-c", hide + code, *arguments], capture_output=True, text=True)


def test_readouts_and_poolings_work_with_the_core_alone():
    done = run_without(OPTIONAL, (ROOT / "tests" / "helpers" / "lean_core.py").read_text())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        (OPTIONAL, "the command sopool needs rich and typer, which are not installed: pip install 'sopool[cli]'."),
        (["sklearn"], "sopool.data needs scikit-learn, which is not installed: pip install 'sopool[estimator]'."),
    ],
)
def test_the_command_says_what_to_install(modules, said):
    done = run_without(modules, "from sopool.__main__ import main; main()", "inspect", "MUTAG")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {said}\n")


def test_each_extra_has_the_packages_that_the_error_says():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of TOML")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {package(line) for line in project["dependencies"]} == CORE
    extras = project["optional-dependencies"]
    declared = {extra: {package(line) for line in lines} - {"sopool"} - OLDER for extra, lines in extras.items()}
    assert declared.pop("dev")
    assert declared.pop("fast") == {"numba"}
    assert not declared.pop("all")  # other extras only
    assert declared == {extra: {name_of(module) for module in modules} for extra, modules in EXTRAS.items()}


def test_every_import_is_declared():
    known = set(sys.stdlib_module_names) | {"sopool", *WITHOUT, *OLDER} | {module.replace("-", "_") for module in CORE}
    known |= {module for own in EXTRAS.values() for module in own}
    assert not {
        f"{path.name} imports {name}"
        for path in Path(sopool.__file__).parent.rglob("*.py")
        for name in imported(path)
        if name not in known
    }


def test_the_error_names_what_is_missing_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "rdkit", None)
    require("this", "networkx", "safetensors")
    said = r"^this needs RDKit and scikit-learn, which are not installed: pip install 'sopool\[estimator,chem\]'\.$"
    with pytest.raises(MissingPackageError, match=said) as caught:
        require("this", "networkx", "rdkit", "sklearn")
    assert isinstance(caught.value, UserError)
    assert isinstance(caught.value, ImportError)


def package(requirement):
    return re.match(r"[\w-]+", requirement).group()


def name_of(module):
    return {"sklearn": "scikit-learn"}.get(module, module)


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
