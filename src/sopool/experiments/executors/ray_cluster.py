"""The interface to Ray: a cluster, its resources, tasks, an actor, and arrays that many processes read."""

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

from sopool._runtime.packages import require
from sopool.errors import ResourceError, SettingError, UserError
from sopool.experiments.executors.needs import Resources

PORT = 6379
RESOURCE = {"cpu": "CPU", "cuda": "GPU"}
NAMES = {"cpu": "cores", "cuda": "GPUs"}
HOW = (
    "Start one with 'ray start --head' here and 'ray start --address HEAD:6379' on each other machine, or use the "
    "address 'local'."
)


class LostError(RuntimeError):
    """A process or a machine of the cluster died, and its work is lost."""


def connect(address: str = "auto") -> None:
    """Join the cluster at ``address``, unless this process has joined one; raise ``ResourceError`` if that fails."""
    ray = _ray()
    if ray.is_initialized():
        return
    if address.startswith("ray://"):
        raise SettingError(
            f"the address {address!r} is that of a Ray client, which cannot store the runs. Start the training on a "
            "machine of the cluster, with the address 'auto' or the host name of its head."
        )
    extra = {"include_dashboard": False} if address == "local" else {}
    if address not in ("auto", "local"):
        address = _answering(address)
    with _own_signals():
        try:
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **extra)
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            if address == "auto" and isinstance(error, ConnectionError):
                raise ResourceError(f"the address is 'auto', but no Ray cluster runs on this machine. {HOW}") from error
            raise ResourceError(
                f"this process cannot join the Ray cluster at the address {address!r} ({_first_line(error)}). Use the "
                "same versions of Ray and Python on all machines; if the cluster requires a token, set "
                "RAY_AUTH_MODE=token."
            ) from error


def _answering(address: str) -> str:
    """Return host and port if something listens there, since Ray itself would wait for minutes."""
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port or PORT)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise ResourceError(f"no Ray cluster answers at the address {address!r} ({error}). {HOW}") from error
    return f"{host}:{port or PORT}"


def device_for(wanted: str) -> str:
    """Return ``"cpu"`` or ``"cuda"``; ``"auto"`` selects the GPUs of the cluster if it has any."""
    gpus = _total("GPU")
    if wanted == "auto":
        return "cuda" if gpus else "cpu"
    if wanted not in RESOURCE:
        raise SettingError(
            f"the device {wanted!r} cannot be used on a cluster: expected auto, cpu or cuda. Ray assigns the GPUs."
        )
    if wanted == "cuda" and not gpus:
        raise ResourceError(
            "the device is 'cuda', but no machine of the cluster has a GPU. Use the device 'auto' or 'cpu'."
        )
    return wanted


def places(device: str) -> int:
    """Return the number of cores or GPUs of the cluster."""
    return max(1, int(_total(RESOURCE[device])))


def resources(device: str) -> Resources:
    """Return the resources of the machines that matter for a device."""
    nodes = _nodes()
    machine = max((node["Resources"].get("memory", 0.0) for node in nodes), default=0.0)
    return Resources(machine, _gpu_bytes(nodes) if device == "cuda" else 0.0)


def describe_cluster(device: str) -> str:
    """Describe the cluster and its use as text, such as ``3 nodes, 6/8 cores``."""
    ray = _ray()
    nodes = len(_nodes())
    name = RESOURCE[device]
    total = _total(name)
    used = total - ray.available_resources().get(name, 0.0)
    return f"{nodes} node{'' if nodes == 1 else 's'}, {max(0.0, used):g}/{total:g} {NAMES[device]}"


def task(function: Callable[..., None]) -> Any:
    """Return a function as a Ray task without retries, since Ray does not know of checkpoints."""
    return _ray().remote(max_retries=0)(function)


def actor_here(kind: type, *arguments: Any) -> Any:
    """Start an object in its own process on this machine; tasks anywhere can call its methods with :func:`ask`."""
    ray = _ray()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(kind).remote(*arguments)


def ask(actor: Any, method: str, *arguments: Any) -> Any:
    """Call a method of an actor, and wait for its result."""
    return result(getattr(actor, method).remote(*arguments))


def result(reference: Any) -> Any:
    """Return the result of a task or raise its error; raise :class:`LostError` if its process died."""
    ray = _ray()
    try:
        # Not ray.get: while a task waits in it, Ray gives its core to another task.
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
    """Return the tasks that have finished, after waiting up to ``seconds``."""
    references = list(references)
    if not references:
        return []
    done: list[Any] = _ray().wait(references, num_returns=len(references), timeout=seconds, fetch_local=False)[0]
    return done


def cancel(references: Iterable[Any]) -> None:
    """Cancel tasks that have not begun."""
    for reference in references:
        _ray().cancel(reference)


def kill(actor: Any, references: Iterable[Any]) -> None:
    """Kill an actor and its tasks, whatever they are doing."""
    ray = _ray()
    for reference in references:
        ray.cancel(reference, force=True)
    ray.kill(actor)


def share_arrays(thing: Any) -> Any:
    """Put an object into Ray's object store with its tensors as arrays, which processes read without copying."""
    ray = _ray()
    from ray.util import deregister_serializer, register_serializer

    register_serializer(torch.Tensor, serializer=torch.Tensor.numpy, deserializer=_tensor)
    try:
        return ray.put(thing)
    finally:
        deregister_serializer(torch.Tensor)


def _tensor(array: np.ndarray) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the array is read-only, and nobody writes to it
        return torch.from_numpy(array)


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    require("training on a Ray cluster", "ray")
    import ray

    return ray


def _nodes() -> list[dict[str, Any]]:
    return [node for node in _ray().nodes() if node["Alive"]]


def _total(resource: str) -> float:
    return float(_ray().cluster_resources().get(resource, 0.0))


def _gpu_bytes(nodes: Iterable[dict[str, Any]]) -> float:
    """Return the memory of the smallest GPU; each machine with GPUs reports its own."""
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
    """Suppress what Ray prints to the standard output from now on, such as logs of machines."""
    sys.stdout = cast(TextIO, _Filter(sys.stdout))


class _Filter:
    """A stream without the output of Ray's own threads."""

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
    """Restore the signal handlers afterwards, since Ray replaces that of SIGTERM."""
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
