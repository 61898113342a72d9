"""Select the part of a table of the paper to run, and how."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sopool.errors import SettingError, check_name
from sopool.experiments.evaluation import make_grid
from sopool.experiments.reproduce.paper.tables import PaperRow, PaperTable
from sopool.experiments.systems import CONTROLS
from sopool.models.config import Setting
from sopool.models.presets import FROZEN, HIERARCHICAL, POOLS, PRESETS
from sopool.training.protocols.protocols import PROTOCOLS

EPOCHS, FOLDS = 350, 10
"""The paper's numbers of epochs and folds."""
SelectedNames = Sequence[str] | None
SelectedSizes = Sequence[int] | None


@dataclass(frozen=True)
class TableSelection:
    """A table of the paper or a part of it; None stands for the values of the table.

    Examples:
        >>> from sopool.experiments.reproduce.paper import read_tables
        >>> from sopool.experiments.reproduce.selection import TableSelection
        >>> selection = TableSelection(read_tables()["table2"], datasets=["MUTAG"], pools=["sum-avg"], hidden=[32])
        >>> selection.data, len(selection.settings)
        (('MUTAG',), 2)
    """

    table: PaperTable
    """The table."""
    datasets: SelectedNames = None
    """The names of the data sets."""
    pools: SelectedNames = None
    """The names of the poolings. Those that the table does not have are added to it, after each of its GNNs."""
    gnns: SelectedNames = None
    """The names of the message-passing layers."""
    protocols: Sequence[str] = ("per-fold-max", "single-epoch", "fair")
    """The names of the protocols."""
    hidden: SelectedSizes = None
    """The widths of the hidden layers to choose from."""
    batch_sizes: SelectedSizes = None
    """The batch sizes to choose from."""
    epochs: int = EPOCHS
    """The number of epochs of each run."""
    folds: int = FOLDS
    """The number of folds."""
    seeds: Sequence[int] = (0,)
    """The random seeds, whose results are averaged."""
    steps: int | None = None
    """Batches per epoch."""
    controls: bool = True
    """Whether controls are run, too, and second-order poolings with random parameters that are not learned."""
    systems: SelectedNames = None
    """The names of the systems of the table, such as ``"gk"``, that are run for its quoted rows. If only one of
    ``pools`` and ``systems`` is given, nothing is run of the other."""

    def check(self) -> None:
        """Raise ``SettingError`` for anything that the table does not have and that cannot be added to it."""
        for dataset in self.datasets or ():
            check_name(f"{self.table.name} data set", dataset, self.table.datasets)
        for gnn in self.gnns or ():
            check_name(f"{self.table.name} GNN", gnn, self.table.gnns)
        for pool in self.pools or ():
            check_name("pooling", pool, HIERARCHICAL if self.table.hierarchical else POOLS)
        if self.systems and not self.table.systems:
            raise SettingError(f"no systems are run for {self.table.name}: choose table1, or name poolings only.")
        for system in self.systems or ():
            check_name(f"{self.table.name} system", system, self.table.systems)
        for protocol in self.protocols:
            check_name("protocol", protocol, PROTOCOLS)
        if not self.seeds or min(self.seeds) < 0:
            raise SettingError(f"seeds must be one or more numbers of at least 0, but {list(self.seeds)} was given.")

    @property
    def data(self) -> tuple[str, ...]:
        """The names of the data sets, in the paper's order."""
        return tuple(name for name in self.table.datasets if self.datasets is None or name in self.datasets)

    @property
    def settings(self) -> list[Setting]:
        """The hyperparameter settings to choose from."""
        fixed = self.table.setting
        return make_grid(
            self.hidden or self.table.hidden, self.batch_sizes or self.table.batch_sizes, [fixed.lr], [fixed.dropout]
        )

    @property
    def departures(self) -> list[str]:
        """The differences from what the paper ran, as text."""
        differ = []
        if self.epochs != EPOCHS:
            differ.append(f"{self.epochs} epochs instead of {EPOCHS}")
        if self.folds != FOLDS:
            differ.append(f"{self.folds} folds instead of {FOLDS}")
        if self.steps not in (None, PRESETS[self.table.preset].steps):
            differ.append(f"{self.steps} batches in an epoch")
        for name, asked, papers in (
            ("hidden", self.hidden, self.table.hidden),
            ("batch size", self.batch_sizes, self.table.batch_sizes),
        ):
            if asked is not None and set(asked) != set(papers):
                differ.append(f"{name} {_list(asked)} instead of {_list(papers)}")
        return differ

    @property
    def steps_asked(self) -> int | None:
        """Batches per epoch; None: one pass over the training graphs."""
        return self.steps or PRESETS[self.table.preset].steps

    @property
    def rows(self) -> tuple[PaperRow, ...]:
        """The table's rows, added ones and controls. Rows that are only quoted are always included.

        Controls are evaluated under ``fair``, and left out if that is not requested.
        """
        chosen = [self._narrowed(row) for row in self.table.rows if row.pool is None or self._wants(row)]
        chosen += self._added()
        if self.controls:
            chosen += [drawn for row in chosen for drawn in _drawn(row)]
        if not (self.controls and "fair" in self.protocols):
            return tuple(replace(row, control=None) for row in chosen)
        there = {row.control for row in chosen}
        return (*chosen, *(PaperRow(name=name, control=name) for name in CONTROLS if name not in there))

    def _wants(self, row: PaperRow) -> bool:
        pooling = self.systems is None if self.pools is None else row.pool in self.pools
        return pooling and (self.gnns is None or row.gnn in self.gnns)

    def _wants_system(self, name: str | None) -> bool:
        return self.pools is None if self.systems is None else name in self.systems

    def _narrowed(self, row: PaperRow) -> PaperRow:
        return replace(
            row,
            figures={dataset: figure for dataset, figure in row.figures.items() if dataset in self.data},
            sources={dataset: source for dataset, source in row.sources.items() if dataset in self.data},
            datasets=tuple(
                name for name in row.datasets if name in self.data and (row.pool or self._wants_system(row.runs(name)))
            ),
        )

    def _added(self) -> list[PaperRow]:
        """Return rows for poolings that the table lacks, after each GNN, with as many blocks as its other rows."""
        known = {row.pool for row in self.table.rows}
        if self.controls:  # controls include these
            known |= {drawn for drawn, learned in FROZEN.items() if learned in (self.pools or ())}
        wanted = [row for row in self.table.rows if row.pool and (self.gnns is None or row.gnn in self.gnns)]
        return [
            PaperRow(f"{gnn} + {pool}{_blocks(blocks)}", gnn, pool, blocks, datasets=self.data)
            for pool in self.pools or ()
            if pool not in known
            for gnn, blocks in dict.fromkeys((row.gnn, row.blocks) for row in wanted)
        ]


def _drawn(row: PaperRow) -> list[PaperRow]:
    """Return the same row with random parameters of the pooling, if there is such a pooling."""
    return [
        PaperRow(f"{row.name}, random", row.gnn, drawn, row.blocks, against=row.name, datasets=row.datasets)
        for drawn, learned in FROZEN.items()
        if learned == row.pool
    ]


def _blocks(count: int) -> str:
    return f", {count} block{'s' if count > 1 else ''}" if count else ""


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers)
