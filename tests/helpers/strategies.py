"""Batches of graphs for hypothesis: sizes with empty graphs anywhere, now and then none at all."""

import torch
from hypothesis import strategies as st

sizes = st.lists(st.one_of(st.just(0), st.integers(0, 7), st.integers(20, 40)), max_size=8)
widths = st.integers(1, 5)
seeds = st.integers(0, 2**31 - 1)


def ptr_of(sizes):
    return torch.tensor([0, *sizes]).cumsum(0)


def index_of(sizes):
    return torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes, dtype=torch.long))


def draw_rows(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)
