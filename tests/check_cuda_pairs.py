"""Pairs of nodes on a CUDA device against float64 on the CPU; a part of tests.check_cuda."""

from functools import partial

import torch

from sopool.nn import PairSecondOrderAggregation
from sopool.ops import Pairs, find_pairs
from tests.helpers.cuda_cases import CHANNELS, SIZES, batch, check, results, worst

DISTANCES = 3
OPTIONS = ({"rest": True}, {"walks": True}, {"normalize": "pairs", "with_sum": True})
LIMITS = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}


def random_edges(directed: bool) -> torch.Tensor:
    """About two edges for each node, within its graph."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.tensor(SIZES)
    starts = (sizes.cumsum(0) - sizes).repeat_interleave(2 * sizes)
    most = sizes.repeat_interleave(2 * sizes)
    ends = starts + (torch.rand(2, len(starts), generator=generator) * most).long().clamp(max=most - 1)
    return ends if directed else torch.cat([ends, ends.flip(0)], 1)


def tensors_of(pairs: Pairs) -> list[torch.Tensor]:
    return [pairs.ptr, pairs.nodes, *pairs.transposed]


def check_pairs(device: str = "cuda") -> None:
    """The same lists, and the values and gradients of the readout in every type, from edges and from pairs."""
    x, _, index = batch()
    for directed in (False, True):
        edges = random_edges(directed)
        pairs = find_pairs(edges, len(x), DISTANCES)
        found = find_pairs(edges.to(device), len(x), DISTANCES)
        for want, got in zip(tensors_of(pairs), tensors_of(found), strict=True):
            assert torch.equal(want, got.cpu()), "other pairs on the device"
        given = dict(zip(("pair_index", "pair_distance"), found.coordinates(), strict=True))
        for options in OPTIONS:
            exact = PairSecondOrderAggregation(CHANNELS, 8, DISTANCES, **options).double()
            label = f"pairs, {'' if directed else 'un'}directed, {' '.join(options)}"
            for dtype, limit in LIMITS.items():
                exact.to(dtype).double()  # in place, so that both have the same rounded weights
                pool = partial(exact, edge_index=edges, batch=index, batch_size=len(SIZES))
                want = results(pool, x.to(dtype).double())
                readout = PairSecondOrderAggregation(CHANNELS, 8, DISTANCES, **options).to(device, dtype)
                readout.load_state_dict(exact.state_dict())
                calls = {"edges": {"edge_index": edges.to(device)}, "pairs": {"edge_index": None} | given}
                for kind, call in calls.items():
                    pool = partial(readout, batch=index.to(device), batch_size=len(SIZES), **call)
                    got = results(pool, x.to(device, dtype))
                    check(f"{label}, {kind}, {dtype}", worst(got, want), limit)
