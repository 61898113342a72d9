"""Run smoke tests with the lowest versions that pyproject.toml allows, in a temporary environment.

Only torch is the one that is installed here: other versions of it would take gigabytes.
"""

import importlib.metadata
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from build.util import project_wheel_metadata
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
NEWEST_PYTHON = (3, 11)
"""The last Python that the lowest versions of NumPy, SciPy and Ray have wheels for."""
TOOLS = ("hypothesis", "pytest", "sybil")
"""What the tests import, at any version."""
SMOKE = (
    "tests/data/test_molecules.py",
    "tests/data/test_convert.py",
    "tests/data/test_packed.py",
    "tests/data/test_jsonl.py",
    "tests/data/test_spectral.py",
    "tests/data/test_tu.py",
    "tests/_files/test_atomic.py",
    "tests/ops/test_numba.py",
    "tests/training/test_run_store.py",
    "tests/experiments/test_comparison.py",
    "tests/experiments/test_statistics.py",
    "tests/estimator/test_model_file.py",
    "tests/estimator/test_sklearn.py",
    "tests/report/test_page.py",
    "tests/cli/test_explain.py",
    "tests/cli/test_fit_predict.py",
    "tests/cli/test_help.py",
    "tests/cli/test_report.py",
    "tests/test_extras.py",
)
"""Fast tests that use every dependency; Ray needs a cluster, which is marked as slow."""
ON_RAY = "tests/experiments/executors/test_ray_executor.py::test_no_core_has_two_banks_at_a_time"


def main() -> None:
    if sys.version_info[:2] > NEWEST_PYTHON:
        wanted = ".".join(map(str, NEWEST_PYTHON))
        print(f"Skipped: the lowest allowed versions have wheels for Python {wanted} and older only.")
        return
    with tempfile.TemporaryDirectory(prefix="sopool-lowest-") as folder:
        python = install(Path(folder))
        run_tests(python, *SMOKE)
        run_tests(python, ON_RAY, SOPOOL_TEST_ALL="1")
    print("The smoke tests pass with the lowest versions allowed.")


def install(folder: Path) -> Path:
    """Install the package with all that a user may ask for, and return the Python that has it."""
    metadata = project_wheel_metadata(ROOT, isolated=False)
    extras = [extra for extra in metadata.get_all("Provides-Extra", []) if extra != "dev"]
    requirements = map(Requirement, metadata.get_all("Requires-Dist", []))
    limits = sorted({limit(requirement) for requirement in requirements if serves(requirement, extras)})
    print("Installing", ", ".join(limits), flush=True)
    constraints = folder / "lowest.txt"
    constraints.write_text("\n".join(limits))
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    # Without wheels there would be a compiler's messages in place of pip's.
    command = [python, "-m", "pip", "install", "--only-binary", ":all:", "--constraint", constraints]
    done = subprocess.run(
        [*command, f"{ROOT}[{','.join(extras)}]", *TOOLS], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        advice = "If a version does not exist, is yanked or conflicts with another, raise its bound in pyproject.toml."
        sys.exit(f"{done.stdout}\nThe lowest versions allowed cannot be installed: see above. {advice}")
    return python


def serves(requirement: Requirement, extras: list[str]) -> bool:
    """Return whether a user with some of ``extras`` needs it here."""
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def limit(requirement: Requirement) -> str:
    """Return the constraint that leaves only the lowest version.

    It is ``<=`` and not ``==``, with which pip would install a version that is yanked.
    """
    if requirement.name == "torch":
        return f"torch=={importlib.metadata.version('torch').partition('+')[0]}"
    lowest = [bound.version for bound in requirement.specifier if bound.operator == ">="]
    if len(lowest) != 1:
        name = requirement.name
        sys.exit(f"pyproject.toml: {requirement} names no lowest version. Write it as {name}>=VERSION.")
    return f"{requirement.name}<={lowest[0]}"


def run_tests(python: Path, *tests: str, **settings: str) -> None:
    """Run tests on the installed package; old versions may warn of what newer ones change."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SOPOOL_TEST_ALL")}
    command = [python, "-m", "pytest", "-q", "-W", "default", "--disable-warnings", "-p", "no:cacheprovider", *tests]
    if subprocess.run(command, cwd=ROOT, env=environment | settings).returncode:
        sys.exit("The smoke tests fail with the lowest versions allowed: mend the code, or raise a bound.")


if __name__ == "__main__":
    main()
