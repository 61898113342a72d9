"""Clusters kept in the user's cache folder, by the graphs they are of."""

import warnings
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from sopool.data.cache import cache_folder
from sopool.data.file import content_key
from sopool.data.spectral import ClusterLevel, ClusterSpec, cluster
from sopool.data.store import PackedGraphs
from sopool.data.whole_file import whole_file

METHOD = 1
"""Part of every name: raise it when other clusters are made of the same graphs."""


def clusters_of(store: PackedGraphs, spec: ClusterSpec) -> list[ClusterLevel]:
    """:func:`~sopool.data.spectral.cluster`, from the cache if it is there; a damaged file is made anew."""
    facts = "-".join(str(fact) for fact in (store.name, content_key(store), *spec, METHOD))
    path = cache_folder() / f"{facts}.clusters"
    try:
        return _load(path, spec)
    except (OSError, SafetensorError, KeyError):
        levels = cluster(store, spec)
    try:
        _save(levels, path)
    except OSError as error:
        warnings.warn(
            f"the clusters of {store.name} could not be kept in {path.parent} ({error}): they will be made again next "
            "time. Set SOPOOL_CACHE to a folder that can be written.",
            stacklevel=2,
        )
    return levels


def _load(path: Path, spec: ClusterSpec) -> list[ClusterLevel]:
    arrays = load_file(path)
    names = ClusterLevel._fields
    return [ClusterLevel(*(arrays[f"{name}_{number}"] for name in names)) for number in range(spec.levels)]


def _save(levels: list[ClusterLevel], path: Path) -> None:
    arrays = {f"{name}_{i}": array for i, level in enumerate(levels) for name, array in level._asdict().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        save_file(arrays, temporary)
