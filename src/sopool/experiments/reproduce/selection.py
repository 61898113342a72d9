"""What of a table of the paper is run, and how."""

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
"""As the paper has them."""
SelectedNames = Sequence[str] | None
SelectedSizes = Sequence[int] | None


@dataclass(frozen=True)
class TableSelection:
    """A table, or some of it. None: as the table has it."""

    table: PaperTable
    datasets: SelectedNames = None
    pools: SelectedNames = None
    """Those that the table has not are added to it, after each of its GNNs."""
    gnns: SelectedNames = None
    protocols: Sequence[str] = tuple(PROTOCOLS)
    hidden: SelectedSizes = None
    batch_sizes: SelectedSizes = None
    epochs: int = EPOCHS
    folds: int = FOLDS
    seeds: Sequence[int] = (0,)
    steps: int | None = None
    controls: bool = True
    """Whether the controls are run, too, and the second-order poolings with their own parameters as drawn."""

    def check(self) -> None:
        """Raise a ``SettingError`` for what the table does not have, or cannot be added to it."""
        for dataset in self.datasets or ():
            check_name(f"data set of {self.table.name}", dataset, self.table.datasets)
        for gnn in self.gnns or ():
            check_name(f"GNN of {self.table.name}", gnn, self.table.gnns)
        for pool in self.pools or ():
            check_name("pooling", pool, HIERARCHICAL if self.table.hierarchical else POOLS)
        for protocol in self.protocols:
            check_name("protocol", protocol, PROTOCOLS)
        if not self.seeds or min(self.seeds) < 0:
            raise SettingError(f"seeds {list(self.seeds)} are not possible: one or more, none below 0, are needed.")

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets, in the paper's order."""
        return tuple(name for name in self.table.datasets if self.datasets is None or name in self.datasets)

    @property
    def settings(self) -> list[Setting]:
        """The grid."""
        fixed = self.table.setting
        return make_grid(
            self.hidden or self.table.hidden, self.batch_sizes or self.table.batch_sizes, [fixed.lr], [fixed.dropout]
        )

    @property
    def departures(self) -> list[str]:
        """Where what is run differs from what the paper ran, in words."""
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
        """Batches in an epoch; None: as many as a pass over the training graphs has."""
        return self.steps or PRESETS[self.table.preset].steps

    @property
    def rows(self) -> tuple[PaperRow, ...]:
        """The table's lines, those added to it, and the controls. Quoted ones always stay: they cost nothing.

        Classifiers without a network are judged under ``fair``, and left out where that is not asked for.
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
        return (self.pools is None or row.pool in self.pools) and (self.gnns is None or row.gnn in self.gnns)

    def _narrowed(self, row: PaperRow) -> PaperRow:
        figures = {dataset: figure for dataset, figure in row.figures.items() if dataset in self.data}
        return replace(row, figures=figures, datasets=tuple(name for name in row.datasets if name in self.data))

    def _added(self) -> list[PaperRow]:
        """Lines for poolings that the table has not: after each GNN, with as many blocks as its other lines have."""
        known = {row.pool for row in self.table.rows}
        if self.controls:  # which bring these themselves
            known |= {drawn for drawn, learned in FROZEN.items() if learned in (self.pools or ())}
        wanted = [row for row in self.table.rows if row.pool and (self.gnns is None or row.gnn in self.gnns)]
        return [
            PaperRow(f"{gnn} + {pool}{_blocks(blocks)}", gnn, pool, blocks, datasets=self.data)
            for pool in self.pools or ()
            if pool not in known
            for gnn, blocks in dict.fromkeys((row.gnn, row.blocks) for row in wanted)
        ]


def _drawn(row: PaperRow) -> list[PaperRow]:
    """The same line with the pooling's own parameters as drawn, where there is such a pooling."""
    return [
        PaperRow(f"{row.name}, random", row.gnn, drawn, row.blocks, against=row.name, datasets=row.datasets)
        for drawn, learned in FROZEN.items()
        if learned == row.pool
    ]


def _blocks(count: int) -> str:
    return f", {count} block{'s' if count > 1 else ''}" if count else ""


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers)
