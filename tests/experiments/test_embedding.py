"""Vectors of words: their gradient, what they learn, and that a seed is all the chance there is."""

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from sopool.errors import SettingError
from sopool.experiments.systems import embedding
from sopool.experiments.systems.embedding import embed, near_words


def test_a_step_goes_against_the_gradient(monkeypatch):
    """The first step of Adagrad is the sign of the gradient, times the rate."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(5, 3, generator=random).requires_grad_()
    y = torch.randn(4, 3, generator=random).requires_grad_()
    chosen = torch.tensor([[0, 1], [1, 1], [3, 0]])
    targets = torch.tensor([[0, 1, 1], [2, 0, 2], [0, 2, 1]])
    signs = torch.tensor([1.0, -1, -1])
    weights = torch.tensor([0.25, 0.75])
    mean = 0.25 * x[chosen[:, 0]] + 0.75 * x[chosen[:, 1]]
    scores = (y[targets] * mean[:, None]).sum(2)
    loss = -logsigmoid(scores * signs).sum()
    loss.backward()
    tables = [embedding._Table(one.detach().clone()) for one in (x, y)]
    embedding._step(*tables, chosen, targets, weights)
    for table, old in zip(tables, (x, y), strict=True):
        torch.testing.assert_close(table.squares, old.grad**2)
        torch.testing.assert_close(old.detach() - table.rows, embedding.RATE * old.grad.sign())


def test_pairs_are_neighbors_in_a_sentence():
    words = np.array([0, 1, 2, 3, 4, 5])
    times = np.array([1, 2, 1, 1, 1, 1])
    ptr = np.array([0, 3, 3, 6])  # 0 1 1 2, nothing, 3 4 5
    generator = torch.Generator().manual_seed(0)
    pairs = [torch.cat([a, b[:, None]], 1) for a, b in (near_words(words, times, ptr, 1)(generator) for _ in range(20))]
    seen, counts = torch.cat(pairs).unique(dim=0, return_counts=True)
    assert seen.tolist() == [[0, 1], [1, 0], [1, 1], [1, 2], [2, 1], [3, 4], [4, 3], [4, 5], [5, 4]]
    counts = counts / counts.sum()
    expected = torch.tensor([1, 1, 2, 1, 1, 1, 1, 1, 1]) / 10
    torch.testing.assert_close(counts, expected, atol=0.02, rtol=0)
    (inputs, targets) = near_words(words, times, ptr, 3)(generator)
    assert {(0, 2), (3, 5)} < set(zip(inputs[:, 0].tolist(), targets.tolist(), strict=True))


def text(seed=0):
    """Sentences about one of two topics with six words each."""
    random = np.random.default_rng(seed)
    topic = random.integers(0, 2, 200)
    words = topic[:, None] * 6 + random.integers(0, 6, (200, 10))
    return words, np.arange(201) * 10


def closeness(vectors):
    """The mean cosine within topics less that between them."""
    x = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = x @ x.T
    same = np.kron(np.eye(2), np.ones((6, 6))).astype(bool) & ~np.eye(12, dtype=bool)
    between = ~np.kron(np.eye(2), np.ones((6, 6))).astype(bool)
    return near[same].mean() - near[between].mean()


def embedded(seed=0, steps=60):
    words, ptr = text()
    draw = near_words(words.ravel(), np.ones(words.size), ptr, window=5)
    return embed(draw, 12, np.bincount(words.ravel(), minlength=12), 8, steps, seed)


def test_words_of_a_topic_are_close():
    assert np.mean([closeness(embedded(seed, steps=0)) for seed in range(20)]) < 0.2
    assert closeness(embedded()) > 0.8


def test_gensim_finds_the_same():
    """Optional."""
    models = pytest.importorskip("gensim.models", reason="gensim is not installed")
    words, _ = text()
    sentences = [list(map(str, row)) for row in words.tolist()]
    options = {"vector_size": 8, "window": 5, "min_count": 0, "sg": 1, "negative": 5, "workers": 1, "epochs": 50}
    model = models.Word2Vec(sentences, seed=0, **options)
    theirs = np.stack([model.wv[str(word)] for word in range(12)])
    assert closeness(theirs) > 0.8
    assert closeness(embedded()) > 0.8


def test_the_seed_is_all_the_chance_there_is():
    torch.manual_seed(1)
    one = embedded()
    torch.manual_seed(2)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        np.testing.assert_array_equal(one, embedded())
    finally:
        torch.set_num_threads(threads)
    assert not np.array_equal(one, embedded(seed=1))


def test_what_cannot_be():
    draw = near_words(np.zeros(0, int), np.zeros(0, int), np.zeros(1, int), 2)
    assert embed(draw, 0, np.zeros(0, int), 3, 5, 0).shape == (0, 3)
    single = near_words(np.array([0]), np.array([1]), np.array([0, 1]), 2)  # no other word in the sentence
    assert np.isfinite(embed(single, 1, np.array([1]), 3, 5, 0)).all()
    with pytest.raises(SettingError, match="window=0, expected"):
        near_words(np.zeros(1, int), np.ones(1), np.array([0, 1]), 0)
    with pytest.raises(SettingError, match="dimensions=0, expected"):
        embed(draw, 1, np.ones(1), 0, 1, 0)
