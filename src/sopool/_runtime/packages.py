"""Know which extra of sopool installs an optional package, and name it where the package is missing."""

from importlib.util import find_spec

from sopool.errors import MissingPackageError

EXTRAS = {
    "estimator": ("filelock", "networkx", "safetensors", "scipy", "sklearn", "threadpoolctl"),
    "cli": ("rich", "typer"),
    "chem": ("rdkit",),
    "parquet": ("pyarrow",),
    "report": ("jinja2", "matplotlib", "plotly"),
    "cluster": ("ray",),
    "export": ("onnx", "onnxscript"),
}
"""The modules that come with each extra of ``pyproject.toml``. Numba (``fast``) is not here: everything works without
it."""
NAMES = {
    "onnx": "ONNX",
    "onnxscript": "ONNX Script",
    "rdkit": "RDKit",
    "ray": "Ray",
    "scipy": "SciPy",
    "sklearn": "scikit-learn",
}
"""The names of packages that differ from those of their modules."""


def require(purpose: str, *modules: str) -> None:
    """Raise a ``MissingPackageError`` that says what to install unless all these modules of :data:`EXTRAS` are there.

    Nothing is imported.

    Args:
        purpose: What needs them: the subject of the message.
        modules: The names of the modules.
    """
    missing = [module for module in modules if find_spec(module) is None]
    if not missing:
        return
    *others, last = [NAMES.get(module, module) for module in missing]
    packages = f"{', '.join(others)} and {last}" if others else last
    extras = ",".join(extra for extra, own in EXTRAS.items() if not set(own).isdisjoint(missing))
    raise MissingPackageError(
        f"{purpose} needs {packages}, which {'are' if others else 'is'} not installed: pip install 'sopool[{extras}]'."
    )
