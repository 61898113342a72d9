"""Functions that several benchmarks share: data folder, timing, subprocesses and versions."""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from sopool._runtime.threads import cores

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""The default folder with NAME.zip files."""


def make_parser(module_docstring: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is the docstring of a script."""
    return argparse.ArgumentParser(description=module_docstring, formatter_class=argparse.RawDescriptionHelpFormatter)


def results_in(path: Path) -> list[dict[str, Any]]:
    """Return the results that a file has, one in a line; none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def appended(path: Path, results: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Append each result to a file as it is found, and yield it."""
    for one in results:
        with path.open("a") as file:
            print(json.dumps(one), file=file)
        yield one


def seconds(work: Callable[[], object]) -> float:
    """Return the wall-clock time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def command(module: str, *arguments: object) -> list[str]:
    """Return the command line that runs a benchmark in a separate process."""
    return [sys.executable, "-m", module, *map(str, arguments)]


def run_alone(module: str, *arguments: object, **environment: str) -> Any:
    """Run a benchmark in a separate process and return the JSON that it prints last."""
    done = subprocess.run(
        command(module, *arguments), check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    return json.loads(done.stdout.splitlines()[-1])


def processor() -> str:
    """Return the model of the processor and the number of cores that this process may use."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor()}, {cores()} cores"


def versions() -> str:
    """Return the system and the versions of Python and PyTorch in one line."""
    import torch  # imported late: processes that measure their own memory do not need it

    return f"{platform.machine()} {platform.system()}, Python {platform.python_version()}, torch {torch.__version__}"
