import json
import subprocess
from pathlib import Path

import pytest
import torch

import sopool
from sopool._runtime import environment as module
from sopool._runtime.environment import commit, device_name, environment

KEYS = ["sopool", "python", "torch", "torch-geometric", "numpy", "numba", "platform", "device", "threads", "commit"]


@pytest.fixture(autouse=True)
def forgotten():
    commit.cache_clear()
    yield
    commit.cache_clear()


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    done = subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A git checkout with one commit, in which the package would be."""
    package = tmp_path / "src" / "sopool"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("one")
    monkeypatch.setattr(sopool, "__file__", str(package / "__init__.py"))
    try:
        git(tmp_path, "init")
    except FileNotFoundError:
        pytest.skip("needs git")
    return tmp_path


def test_what_is_in_it():
    found = environment("cpu")
    assert list(found) == KEYS
    assert json.loads(json.dumps(found)) == found
    assert found["sopool"] == sopool.__version__
    assert found["torch"] == torch.__version__
    assert found["threads"] == torch.get_num_threads()
    assert all(found[name] for name in KEYS if name != "commit")


def test_commit_of_the_checkout(checkout, monkeypatch):
    git(checkout, "add", ".")
    git(checkout, "commit", "--no-verify", "-m", "one")
    git(checkout, "tag", "-a", "v1", "-m", "one")
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as inside a hook of another repository
    assert len(commit()) == 40
    monkeypatch.delenv("GIT_DIR")
    assert commit() == git(checkout, "rev-parse", "HEAD")
    commit.cache_clear()
    (checkout / "src" / "sopool" / "__init__.py").write_text("two")
    assert commit() == git(checkout, "rev-parse", "HEAD") + "-dirty"


def test_a_package_below_somebody_elses_checkout(checkout):
    (checkout / "theirs.py").write_text("x")
    git(checkout, "add", "theirs.py")
    git(checkout, "commit", "--no-verify", "-m", "one")
    assert commit() is None


def test_no_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(sopool, "__file__", str(tmp_path / "__init__.py"))
    assert commit() is None


def test_no_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment("cpu")["commit"] is None


def test_device_names(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"card {device}")
    assert device_name("cuda:1") == "card cuda:1"
    assert device_name("mps") == "mps"
    assert device_name("cpu") not in ("", "cpu")


def test_a_processor_without_a_name(monkeypatch):
    def unreadable(path):
        raise OSError

    monkeypatch.setattr(Path, "read_text", unreadable)
    for name, answer in {"system": "Plan 9", "processor": "", "machine": ""}.items():
        monkeypatch.setattr(module.platform, name, lambda answer=answer: answer)
    assert module._cpu_name.__wrapped__() == "cpu"
