"""Build the wheel, install it into a new environment, and use it there: without any extra, then with the commands."""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FILES = """
import importlib.metadata, importlib.resources, sopool
from pathlib import Path
assert importlib.metadata.version("sopool") == sopool.__version__
assert (importlib.resources.files(sopool) / "py.typed").is_file()
assert "site-packages" in Path(sopool.__file__).parts, sopool.__file__
"""
LEAN = (ROOT / "tests" / "helpers" / "lean_core.py").read_text()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, str(ROOT)]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        (wheel,) = home.glob("*.whl")
        venv.create(home / "env", with_pip=True)
        python = home / "env" / "bin" / "python"
        install = [python, "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
        command = python.with_name("sopool")
        subprocess.run([*install, wheel], check=True)
        subprocess.run([python, "-c", FILES + LEAN], check=True, cwd=folder)
        shown = subprocess.run([command, "demo"], cwd=folder, capture_output=True, text=True)
        advice = re.fullmatch(r"error: .+: pip install '(.+)'\.\n", shown.stderr)
        assert shown.returncode == 2, shown
        assert advice, shown
        print("the wheel installs and works without any extra")
        subprocess.run([*install, advice[1]], check=True)
        evaluate = [command, "evaluate", "MUTAG", "--epochs", "1", "--steps", "1", "--folds", "2"]
        subprocess.run(evaluate, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        print("and so does sopool evaluate, with", advice[1])


if __name__ == "__main__":
    main()
