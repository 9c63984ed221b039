"""The most that plans without predictions can keep: they follow the load, with settings that are best in hindsight.

Such a plan has the replicas that the highest load of a recent window needed, times a factor, but at least a floor. A
start-up time passes between a decision and its effect. The window, the factor, the share of requests that counts as
enough, and the floor are chosen for each row with knowledge of all arrivals: these plans know how high the load gets,
but not when. Constant splits are included (by their floor). A result that none of them reaches for some GPU time is out
of reach for every policy of this kind; a policy that predicts the load may reach it. Requests are counted as in the
plan in hindsight (`clairvoyant.py`).
"""

from collections.abc import Mapping
from itertools import product
from math import ceil

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from tests.benchmarks.clairvoyant import SLOT, Array, Hindsight, Split

WHILES = (0.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1800.0)
"""Seconds that replicas are held after they were last needed."""
TIMES = (1.0, 1.25, 1.5, 2.0, 3.0)
"""Factors: replicas for each needed one."""
ENOUGH = (0.8, 0.9, 0.95, 0.98, 0.995)
"""Share of a slot's requests that its replicas keep."""

Counts = npt.NDArray[np.int64]


def followers(kept: Mapping[Split, Array], arrivals: Array, startup: float, first: Split = (1, 1)) -> list[Hindsight]:
    """Plans that no other of them beats, from the cheapest to the one that keeps most. One GPU a replica.

    `kept` and `arrivals` are requests by slot of `SLOT` seconds; `first` is there before a start-up time has passed.
    """
    splits = sorted(kept, key=lambda split: (sum(split), split))
    most = sum(splits[-1])
    table = np.zeros((most, most, arrivals.size))
    for (one, other), requests in kept.items():
        table[one, other] = requests
    floors = np.array(splits).T[:, :, None]
    plans = []
    for enough in ENOUGH:
        needed = _needed(splits, kept, enough * arrivals)
        for seconds, times in product(WHILES, TIMES):
            asked = np.ceil(times * _known(needed, seconds, startup, first) - 1e-9).astype(np.int64)
            there = _within(np.maximum(asked[:, None, :], floors), most)
            there[:, :, : ceil(startup / SLOT)] = np.array(first)[:, None, None]
            plans += _outcomes(there, table, startup, first, float(arrivals.sum()))
    return _best(plans)


def _needed(splits: list[Split], kept: Mapping[Split, Array], enough: Array) -> Counts:
    """For each slot the fewest GPUs that keep enough requests; if none do, those that keep most; by pool and slot."""
    by_split = np.array([kept[split] for split in splits])
    reached = by_split >= np.minimum(enough, by_split.max(axis=0)) - 1e-9
    gpus = np.array([sum(split) for split in splits])[:, None]
    fewest = np.where(reached, gpus, gpus.max() + 1).min(axis=0)
    chosen = np.where(reached & (gpus == fewest), by_split, -1.0).argmax(axis=0)
    return np.array(splits)[chosen].T


def _known(needed: Counts, seconds: float, startup: float, first: Split) -> Counts:
    """The maximum need of the last seconds, as known a start-up time before each slot began."""
    late, window = ceil(startup / SLOT) + 1, round(seconds / SLOT) + 1
    before = np.repeat(np.array(first)[:, None], late + window - 1, axis=1)
    known = np.concatenate([before, needed], axis=1)[:, : needed.shape[1] + window - 1]
    return np.asarray(sliding_window_view(known, window, axis=1).max(axis=2))


def _within(asked: Counts, most: int) -> Counts:
    """The need limited to the available GPUs: the larger pool is reduced."""
    one, other = np.minimum(asked, most - 1)
    while (over := one + other > most).any():
        larger = one >= other
        one, other = one - (over & larger), other - (over & ~larger)
    return np.array([one, other])


def _outcomes(there: Counts, table: Array, startup: float, first: Split, requests: float) -> list[tuple[float, float]]:
    """GPU seconds and the share of requests kept, of each floor's plan."""
    kept = table[there[0], there[1], np.arange(table.shape[2])].sum(axis=1)
    before = np.concatenate([np.broadcast_to(np.array(first)[:, None, None], (*there.shape[:2], 1)), there], axis=2)
    started = np.maximum(np.diff(before, axis=2), 0).sum(axis=(0, 2))
    seconds = SLOT * there.sum(axis=(0, 2)) + startup * started
    return list(zip(seconds.tolist(), (kept / requests).tolist(), strict=True))


def _best(plans: list[tuple[float, float]]) -> list[Hindsight]:
    results: list[Hindsight] = []
    for seconds, share in sorted(plans, key=lambda plan: (plan[0], -plan[1])):
        if not results or share > results[-1].attainment:
            results.append(Hindsight(share, seconds / 3600))
    return results
