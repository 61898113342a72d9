"""How fast it is on this machine: readouts beside their floor, the bank beside other ways to train the same model."""

from sopool.experiments.bench.results import BankRow, ReadoutRow, Results, machine
from sopool.experiments.bench.run import Request, run
from sopool.experiments.bench.timing import FULL, QUICK, Effort

__all__ = ["FULL", "QUICK", "BankRow", "Effort", "ReadoutRow", "Request", "Results", "machine", "run"]
