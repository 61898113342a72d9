"""Networks of any architecture as classifiers: modules with ``forward(x, edge_index, batch)``, as in PyG."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from sopool._runtime.generators import drawing_from, drawing_in
from sopool.data.extras import Extra
from sopool.errors import SettingError, suggest
from sopool.models.base import Classifier, Scored
from sopool.models.config import ModelConfig
from sopool.models.stack import member_of
from sopool.models.systems import SYSTEMS, TrainedSystem
from sopool.nn.dropout import Dropout
from sopool.nn.pool.edge_list import list_edges
from sopool.ops.message_passing.extras import Extras
from sopool.ops.message_passing.neighbors import Neighbors


def network_of(name: str) -> TrainedSystem:
    """Return a trained system by its name; raise ``SettingError`` if there is none.

    Examples:
        >>> from sopool.models.network import network_of
        >>> network_of("dgcnn").settings[0].batch_size
        50
    """
    import sopool.models.systems.networks  # noqa: F401 - registers those of this package; some of them need this module

    found = SYSTEMS.get(name)
    if not isinstance(found, TrainedSystem):
        known = [one for one, system in SYSTEMS.items() if isinstance(system, TrainedSystem)]
        raise SettingError(
            f"there is no trained system {name!r} in this process.{suggest(name, known)} Known: {', '.join(known)}. If "
            "it is your own, import the module that registers it first. Fixed systems, such as graph kernels, can be "
            "evaluated (sopool evaluate --system, or sopool.experiments), but not fitted."
        )
    return found


class NetworkClassifier(Classifier):
    """A classifier that leaves everything to a module with ``forward(x, edge_index, batch)``, and perhaps extras.

    Models of a stack run one after the other, so any module works in it, only slower than layers that are made for
    stacks. A graph without nodes has the score 0 for each class: the module never sees it, since PyG's poolings lose
    such graphs at the end of a batch. A module may return an additional loss of each graph beside the scores. If its
    attribute ``draws`` is false, only its layers ``torch.nn.Dropout`` draw random numbers after its creation.

    Args:
        config: The architecture; ``system`` names the network, which gets ``system_options`` and those options that
            follow from the training graphs, ``pool_options``.
        in_channels: Number of input features ``F``.
        classes: Number of classes ``C``.
    """

    capturable = False  # the numbers of nodes and edges decide what is computed
    unused: Tensor

    def __init__(self, config: ModelConfig, in_channels: int, classes: int) -> None:
        super().__init__()
        self.config = config
        self.classes = classes
        make = network_of(config.system).make
        options = {"hidden": config.hidden} | config.pool_options | config.system_options
        try:
            self.network = make(in_channels, classes, **options)
        except TypeError as error:
            given = ", ".join(f"{name}={value!r}" for name, value in options.items())
            raise SettingError(f"{config.system} cannot be made with {given}: {error}.") from error
        self.draws = self._draws_anywhere or bool(self._dropouts())
        self.register_buffer("unused", torch.zeros(1))  # stacks have statistics, even if the network has none
        self.apart: list[torch.nn.Module] = []
        """The networks as modules of their own, see :meth:`separate`."""

    @property
    def extras(self) -> Mapping[str, Extra]:
        """What the network needs of graphs besides their edges."""
        return network_of(self.config.system).extras

    @property
    def models(self) -> int:
        """The number of stacked models; 1 for a single model."""
        return self.unused.shape[0] if self.unused.dim() == 2 else 1

    def separate(self) -> None:
        """Give each stacked network a module of its own, so that several threads can predict at the same time."""
        stacked = self.unused.dim() == 2
        self.apart = [member_of(self.network, model) for model in range(self.models)] if stacked else [self.network]

    def _apply(self, *args: Any, **kwargs: Any) -> "NetworkClassifier":
        """Change tensors as ``to`` and ``double`` do, those of separate modules as well."""
        for network in self.apart:
            network._apply(*args, **kwargs)
        super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]
        return self

    def classify(
        self,
        x: Tensor,
        neighbors: Neighbors,
        ptr: Tensor,
        graph_x: Tensor | None = None,
        dropout: Dropout | None = None,
    ) -> Scored:
        """Return scores of graphs with features ``[N, F]`` and first nodes ``ptr`` ``[G + 1]``.

        Random numbers that the network draws follow from the keys of ``dropout``.
        """
        self._check(neighbors)
        edges = list_edges(neighbors).edge_index  # ordered by target and then by source
        models = self.models
        graphs = (ptr.numel() - 1) // models
        scores: list[Tensor] = []
        penalties: list[Tensor | None] = []
        rows = ptr[torch.arange(models + 1, device=ptr.device) * graphs]
        cuts = zip(*map(pairwise, (rows.tolist(), torch.searchsorted(edges[1], rows).tolist())), strict=True)
        for model, ((first, last), (start, end)) in enumerate(cuts):
            here = edges[:, start:end] - first
            sizes = ptr[model * graphs : (model + 1) * graphs + 1].diff()
            there = sizes > 0
            batch = torch.repeat_interleave(sizes[there])
            found = Scored(x.new_zeros(0, self.classes))
            if len(batch):
                extras = self._extras(neighbors, model * graphs, (model + 1) * graphs)
                found = self._run(model, (x[first:last], here, batch), extras, dropout)
            scores.append(_spread(found.scores, there))
            penalties.append(None if found.penalty is None else _spread(found.penalty, there))
        if all(penalty is None for penalty in penalties):
            return Scored(torch.cat(scores))
        zeros = x.new_zeros(graphs)
        return Scored(torch.cat(scores), torch.cat([zeros if one is None else one for one in penalties]))

    def _check(self, neighbors: Neighbors) -> None:
        """Raise a ``ValueError`` if the graphs lack an extra."""
        lacking = [name for name in self.extras if name not in neighbors.extras]
        if lacking:
            raise ValueError(
                f"{self.config.system} needs {' and '.join(lacking)} of the graphs, which they do not have: add "
                "them to the tables by with_extras(store, extras_for(config))."
            )

    def _extras(self, neighbors: Neighbors, first: int, last: int) -> dict[str, Any]:
        """Return the extras of graphs ``first`` to ``last - 1``, as arguments."""
        if not self.extras:
            return {}
        assert isinstance(neighbors.extras, Extras)
        own = neighbors.extras.stretch(first, last)
        return {name: own[name] for name in self.extras}

    def _run(
        self, model: int, graphs: tuple[Tensor, Tensor, Tensor], extras: dict[str, Any], dropout: Dropout | None
    ) -> Scored:
        """Run one of the stacked networks."""
        if self.apart:
            return _scored(self.apart[model](*graphs, **extras))
        tensors: dict[str, Tensor] = dict(self.network.named_parameters()) | dict(self.network.named_buffers())
        if self.unused.dim() == 2:
            tensors = {name: tensor[model] for name, tensor in tensors.items()}
        with self._drawing(model, graphs[0].device, dropout):
            return _scored(functional_call(self.network, tensors, graphs, extras))

    def _drawing(self, model: int, device: torch.device, dropout: Dropout | None) -> AbstractContextManager[None]:
        """Return a context in which one of the stacked networks draws random numbers."""
        if dropout is None:
            return nullcontext()
        seed = int(dropout.keys.flatten()[model]) & 0xFFFFFFFF
        return drawing_from(seed, device) if self._draws_anywhere else drawing_in(self._dropouts(), seed, device)

    @property
    def _draws_anywhere(self) -> bool:
        """Whether other layers than those for dropout may draw random numbers."""
        return bool(getattr(self.network, "draws", True))

    def _dropouts(self) -> list[torch.nn.Module]:
        return [layer for layer in self.network.modules() if isinstance(layer, torch.nn.modules.dropout._DropoutNd)]


def _scored(found: Tensor | tuple[Tensor, Tensor]) -> Scored:
    """Return the scores that a network returned, alone or with penalties."""
    return Scored(*found) if isinstance(found, tuple) else Scored(found)


def _spread(rows: Tensor, there: Tensor) -> Tensor:
    """Return the rows of the graphs that are ``there`` ``[G]``, bool, and zeros for the others."""
    whole = rows.new_zeros(there.shape[0], *rows.shape[1:])
    return whole.index_put((there.nonzero().squeeze(1),), rows)
