"""Run a target under atheris: ``python -m tests.fuzz TARGET [arguments of atheris]``."""

import sys
from importlib import import_module
from pathlib import Path

USAGE = """\
python -m tests.fuzz TARGET [arguments of atheris]
python -m tests.fuzz --seeds TARGET FOLDER      writes the inputs to start from into a folder
The targets: {}."""
NO_ATHERIS = "atheris is not installed: pip install atheris. Without it, make test-all tries all targets."


def main(arguments: list[str]) -> int:
    """Fuzz a target or write its seeds; return the exit code."""
    if arguments[:1] == ["--seeds"]:
        return _write_seeds(arguments[1:])
    try:
        atheris = import_module("atheris")
    except ImportError:
        print(NO_ATHERIS, file=sys.stderr)
        return 2
    # Only modules that are imported in here tell which of their lines an input reaches.
    with atheris.instrument_imports(include=["sopool"]):
        targets = _targets()
    if not arguments or arguments[0] not in targets:
        return _usage(targets)
    atheris.Setup(["tests.fuzz", *arguments[1:]], targets[arguments[0]].run)
    atheris.Fuzz()
    return 0


def _targets():
    return import_module("tests.fuzz.registry").load_targets()


def _write_seeds(arguments: list[str]) -> int:
    targets = _targets()
    if len(arguments) != 2 or arguments[0] not in targets:
        return _usage(targets)
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(targets[arguments[0]].seeds):
        (folder / f"seed-{number}").write_bytes(seed)
    return 0


def _usage(targets) -> int:
    print(USAGE.format(", ".join(targets)), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
