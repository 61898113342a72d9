"""All that is asked of Ray: a cluster, what it has, tasks, an actor, arrays that many processes read."""

import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, cast

import numpy as np
import torch

from sopool.errors import MissingPackageError, ResourceError, SettingError, UserError
from sopool.experiments.executors.needs import Resources

PORT = 6379
RESOURCE = {"cpu": "CPU", "cuda": "GPU"}
NAMES = {"cpu": "cores", "cuda": "GPUs"}
HOW = (
    "Start one with 'ray start --head', and with 'ray start --address HEAD:6379' on each other machine; or take "
    "--address local."
)


class LostError(RuntimeError):
    """A process or a machine of the cluster is gone, and what it was doing with it."""


def connect(address: str = "auto") -> None:
    """Be part of the cluster at ``address``, unless this process already is; a ``ResourceError`` if that fails."""
    ray = _ray()
    if ray.is_initialized():
        return
    if address.startswith("ray://"):
        raise SettingError(
            f"--address {address}: a client from outside cannot keep the runs. Give the command on a machine of the "
            "cluster, with --address auto or the name of the head."
        )
    extra = {"include_dashboard": False} if address == "local" else {}
    if address not in ("auto", "local"):
        address = _answering(address)
    with _own_signals():
        try:
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **extra)
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            if address == "auto" and isinstance(error, ConnectionError):
                raise ResourceError(f"--address auto: no Ray cluster runs on this machine. {HOW}") from error
            raise ResourceError(
                f"--address {address}: this process cannot join ({_first_line(error)}). Have the same versions of Ray "
                "and Python there and here; where the cluster asks for a token, set RAY_AUTH_MODE=token."
            ) from error


def _answering(address: str) -> str:
    """Host and port, if anything listens there: Ray itself would wait for minutes."""
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port or PORT)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise ResourceError(f"--address {address}: no Ray cluster answers there ({error}). {HOW}") from error
    return f"{host}:{port or PORT}"


def device_for(wanted: str) -> str:
    """``cpu`` or ``cuda``; ``auto`` is the GPUs of the cluster if it has any."""
    gpus = _total("GPU")
    if wanted == "auto":
        return "cuda" if gpus else "cpu"
    if wanted not in RESOURCE:
        raise SettingError(f"--device {wanted}: on a cluster it is auto, cpu or cuda; Ray says which GPU a bank gets.")
    if wanted == "cuda" and not gpus:
        raise ResourceError(
            "--device cuda: no machine of the cluster has a GPU. Leave --device out to take what is there."
        )
    return wanted


def places(device: str) -> int:
    """How many banks find one each: cores, or GPUs."""
    return max(1, int(_total(RESOURCE[device])))


def resources(device: str) -> Resources:
    """What the machines have, as far as it matters there."""
    nodes = _nodes()
    machine = max((node["Resources"].get("memory", 0.0) for node in nodes), default=0.0)
    return Resources(machine, _gpu_bytes(nodes) if device == "cuda" else 0.0)


def describe_cluster(device: str) -> str:
    """Such as ``3 nodes, 6/8 cores``."""
    ray = _ray()
    nodes = len(_nodes())
    name = RESOURCE[device]
    total = _total(name)
    used = total - ray.available_resources().get(name, 0.0)
    return f"{nodes} node{'' if nodes == 1 else 's'}, {max(0.0, used):g}/{total:g} {NAMES[device]}"


def task(function: Callable[..., None]) -> Any:
    """A function as tasks, to be given their needs. Who dies is replaced by us: Ray does not know of checkpoints."""
    return _ray().remote(max_retries=0)(function)


def actor_here(kind: type, *arguments: Any) -> Any:
    """An object in a process of its own on this machine, for tasks anywhere to :func:`ask`."""
    ray = _ray()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(kind).remote(*arguments)


def ask(actor: Any, method: str, *arguments: Any) -> Any:
    """Call a method of an actor, and wait."""
    return result(getattr(actor, method).remote(*arguments))


def result(reference: Any) -> Any:
    """What a task gave, or the error it ended with; a :class:`LostError` if its process is gone."""
    ray = _ray()
    try:
        # Not ray.get: while a task waits in it, Ray gives its core to another one.
        return reference.future().result()
    except ray.exceptions.TaskCancelledError:
        return None
    except ray.exceptions.RayError as error:
        cause: BaseException | None = error
        while isinstance(cause, ray.exceptions.RayTaskError):
            cause = cause.cause
        if cause is error or isinstance(cause, ray.exceptions.RayError):
            raise LostError(_first_line(error)) from error
        if isinstance(cause, UserError | LostError):
            raise type(cause)(str(cause)) from error
        raise


def finished(references: Iterable[Any], seconds: float) -> Sequence[Any]:
    """Those that are over by now, or will be very soon."""
    references = list(references)
    if not references:
        return []
    done: list[Any] = _ray().wait(references, num_returns=len(references), timeout=seconds, fetch_local=False)[0]
    return done


def cancel(references: Iterable[Any]) -> None:
    """Tasks that have not begun."""
    for reference in references:
        _ray().cancel(reference)


def kill(actor: Any, references: Iterable[Any]) -> None:
    """An actor and its tasks, whatever they are doing."""
    ray = _ray()
    for reference in references:
        ray.cancel(reference, force=True)
    ray.kill(actor)


def share_arrays(thing: Any) -> Any:
    """Put something into the object store with its tensors as arrays, which processes read where they lie."""
    ray = _ray()
    from ray.util import deregister_serializer, register_serializer

    register_serializer(torch.Tensor, serializer=torch.Tensor.numpy, deserializer=_tensor)
    try:
        return ray.put(thing)
    finally:
        deregister_serializer(torch.Tensor)


def _tensor(array: np.ndarray) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cannot be written to: nobody does
        return torch.from_numpy(array)


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError("--executor ray needs Ray: pip install 'sopool[cluster]'.") from error
    return ray


def _nodes() -> list[dict[str, Any]]:
    return [node for node in _ray().nodes() if node["Alive"]]


def _total(resource: str) -> float:
    return float(_ray().cluster_resources().get(resource, 0.0))


def _gpu_bytes(nodes: Iterable[dict[str, Any]]) -> float:
    """The memory of the smallest GPU: each machine that has any looks at its own."""
    ray = _ray()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = [
        NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes if node["Resources"].get("GPU")
    ]
    look = ray.remote(num_cpus=0, num_gpus=0.001)(_gpu_memory)
    return float(min(ray.get([look.options(scheduling_strategy=one).remote() for one in there])))


def _gpu_memory() -> int:
    return torch.cuda.get_device_properties(0).total_memory


def hush() -> None:
    """Ray prints what befalls machines, with pages of their logs, to the standard output: keep it clean from now on."""
    sys.stdout = cast(TextIO, _Filter(sys.stdout))


class _Filter:
    """A stream without what Ray's own threads write."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if threading.current_thread().name.startswith("ray_"):
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself: whoever handled it before still does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
