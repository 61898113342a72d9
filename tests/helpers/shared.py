"""Where the benchmark data lie, for tests that read them."""

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data are not beside the repository")
