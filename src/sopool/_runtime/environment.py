"""Describe the environment of a run: versions, device, threads, git commit."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import sopool

PACKAGES = ("torch-geometric", "numpy", "numba")


def environment(device: str) -> dict[str, Any]:
    """Return everything besides the configuration that may change a result, with the same keys on every machine.

    ``commit`` is the commit of the checkout from which this package runs, with ``-dirty`` if a tracked file was
    changed. It is None for an installed package, or without git.
    """
    return {
        "sopool": sopool.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),  # includes the CUDA version, unlike the package's metadata
        **{name: package_version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "commit": commit(),
    }


def peak_memory(device: str) -> int | None:
    """Return the peak memory in bytes of this process or, on a GPU, of PyTorch's allocations there.

    The result is None if the system does not provide it.
    """
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return None
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if platform.system() == "Darwin" else 1024)


def device_name(device: str) -> str:
    """Return a name such as ``NVIDIA H200`` or ``AMD EPYC 9654 96-Core Processor``, or else the type of the device."""
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.cuda.get_device_name(device)
    return _cpu_name() if kind == "cpu" else kind


@cache
def commit() -> str | None:
    """Return the git commit of the checkout that contains this package, or None."""
    here = Path(sopool.__file__).parent
    # An installed package may be inside an unrelated checkout, so the file must be tracked.
    if _output("git", "-C", str(here), "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    return _output("git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


@cache
def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("model name")]
    if not names and platform.system() == "Darwin":
        names = [_output("sysctl", "-n", "machdep.cpu.brand_string") or ""]
    return next(filter(None, [*names, platform.processor(), platform.machine()]), "cpu")


@cache
def package_version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _output(*command: str) -> str | None:
    # A git hook sets variables that point to another repository, and reading must not write to this one.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
