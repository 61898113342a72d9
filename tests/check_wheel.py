"""Build the wheel, install it into a new environment with nothing else, and use it from there."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

USE = """
import importlib.metadata, importlib.resources, torch
import sopool, sopool.nn
from pathlib import Path
assert importlib.metadata.version("sopool") == sopool.__version__
assert (importlib.resources.files(sopool) / "py.typed").is_file()
assert "site-packages" in Path(sopool.__file__).parts, sopool.__file__
x, batch = torch.randn(9, 4), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1, 1])
for name in sopool.nn.READOUTS:
    assert sopool.nn.make_readout(name, 4)(x, batch).shape[0] == 2
print("the wheel installs and works:", sopool.__version__)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, str(ROOT)]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        (wheel,) = home.glob("*.whl")
        venv.create(home / "env", with_pip=True)
        python = home / "env" / "bin" / "python"
        constraints = str(ROOT / "constraints.txt")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--constraint", constraints, wheel], check=True)
        subprocess.run([python, "-c", USE], check=True, cwd=folder)
        evaluate = [python.with_name("sopool"), "evaluate", "MUTAG", "--epochs", "1", "--steps", "1", "--folds", "2"]
        subprocess.run(evaluate, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        print("and so does sopool evaluate, without any extra")


if __name__ == "__main__":
    main()
