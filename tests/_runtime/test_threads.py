"""How many threads PyTorch's operators use, where several threads set that number."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch

from sopool._runtime.threads import one_threaded_pool, threads


@pytest.fixture
def three_threads():
    """So many threads of PyTorch, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def threads_of_a_new_thread():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_blocks_that_overlap_restore_the_number_of_threads(three_threads):
    """In whatever order they are left, for the threads in them and for those that are started later."""
    entered = Event()
    left = Event()

    def second():
        with threads(1) as outside:
            entered.set()
            assert left.wait(60)
            inside = torch.get_num_threads()
        return outside, inside, torch.get_num_threads()

    with ThreadPoolExecutor(1) as pool:
        with threads(1) as outside:
            found = pool.submit(second)
            assert entered.wait(60)
        left.set()
        assert found.result() == (3, 1, 3)
    assert outside == 3
    assert torch.get_num_threads() == 3
    assert threads_of_a_new_thread() == 3


def test_blocks_in_blocks(three_threads):
    with threads(2) as outside, threads(1) as between:
        assert (outside, between, torch.get_num_threads()) == (3, 2, 1)
    assert torch.get_num_threads() == 3


def test_workers_of_a_pool_use_one_thread(three_threads):
    """Also where another thread has just left its block, so that new threads would start with more."""
    with threads(1):
        with one_threaded_pool(2) as pool:
            torch.set_num_threads(3)
            assert pool.submit(torch.get_num_threads).result() == 1
        assert torch.get_num_threads() == 3
    assert threads_of_a_new_thread() == 3
