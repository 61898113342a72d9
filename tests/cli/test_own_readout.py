"""A readout of the user's own, in a script that is called in place of the command."""

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import TINY

SCRIPT = '''
from sopool.__main__ import main
from sopool.nn import READOUTS, SegmentAggregation
from sopool.ops import segment_sum


class Doubled(SegmentAggregation):
    """Twice the sum, [N, f] -> [G, f]."""

    def pool(self, x, ptr):
        return 2 * segment_sum(x, ptr)


READOUTS["doubled"] = Doubled
if __name__ == "__main__":
    main()
'''


@pytest.fixture
def mine(tmp_path, clean_environment):
    """What the script prints, once it is written."""

    def call(script, *arguments):
        (tmp_path / "mine.py").write_text(script)
        command = [sys.executable, "mine.py", *arguments]
        return subprocess.check_output(command, env=clean_environment, cwd=tmp_path, text=True)

    return call


@pytest.mark.slow
def test_once_edited_it_is_trained_anew(mine):
    asked = ["evaluate", "MUTAG", "--pool", "doubled", "--protocol", "single-epoch", "--hidden", "4", *TINY]
    assert "Trained 4 model-epochs" in mine(SCRIPT, *asked)
    assert "Nothing to train" in mine(SCRIPT, *asked)
    assert "Trained 4 model-epochs" in mine(SCRIPT.replace("2 *", "3 *"), *asked)


@pytest.mark.slow
def test_it_is_listed_among_the_poolings(mine):
    assert json.loads(mine(SCRIPT, "pools", "--json"))[-1]["formula"] == "Twice the sum, [N, f] -> [G, f]."
