"""What is asked of Ray, as far as it can be told without a cluster."""

import sys
import threading

import pytest

from sopool.errors import MissingPackageError, UserError
from sopool.experiments.executors.ray_cluster import connect, hush


def test_what_ray_writes_is_kept_from_the_standard_output(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    hush()
    for name in ("ray_listen_error_messages", "another"):
        thread = threading.Thread(target=print, args=(f"from {name}",), name=name)
        thread.start()
        thread.join()
    print("from here")
    assert not sys.stdout.isatty()
    assert capsys.readouterr().out == "from another\nfrom here\n"


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'sopool\[cluster\]'"):
        connect()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("ray://head:10001", "the address '{}' is that of a Ray client, which cannot store the runs"),
        ("localhost:1", "no Ray cluster answers at the address '{}'"),
        ("localhost:port", "no Ray cluster answers at the address '{}'"),
    ],
)
def test_addresses_that_cannot_be(address, says):
    pytest.importorskip("ray", reason="needs Ray: pip install 'sopool[cluster]'")
    with pytest.raises(UserError, match=says.format(address)):
        connect(address)
