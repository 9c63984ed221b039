"""The true latency of simulated engines: linear between the measured points, independent of the estimator.

Policies are judged against this, so a wrong estimator must lose here.
"""

from bisect import bisect_right
from collections import defaultdict
from itertools import groupby

from dynamo_planner.core.profile import Profile


class Line:
    """Linear between points, constant before the first, with the mean slope after the last."""

    def __init__(self, points: list[tuple[float, float]]) -> None:
        merged = [(x, [y for _, y in same]) for x, same in groupby(sorted(points), key=lambda point: point[0])]
        self.xs: list[float] = [x for x, _ in merged]
        self.ys: list[float] = [sum(ys) / len(ys) for _, ys in merged]
        # With one point only: a line through the origin.
        first_x, first_y = (self.xs[0], self.ys[0]) if len(self.xs) > 1 else (0.0, 0.0)
        width = self.xs[-1] - first_x
        self.slope = max(0.0, (self.ys[-1] - first_y) / width) if width > 0 else 0.0

    def at(self, x: float) -> float:
        """The value at `x`."""
        xs, ys = self.xs, self.ys
        if x <= xs[0]:
            return ys[0]
        if x >= xs[-1]:
            return ys[-1] + (x - xs[-1]) * self.slope
        i = bisect_right(xs, x)
        low = xs[i - 1]
        return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - low) / (xs[i] - low)


class MeasuredEngine:
    """Seconds of iterations, read from a measured profile with both parts."""

    def __init__(self, profile: Profile) -> None:
        profile.complete()
        self._prefill = Line([(point.isl, point.ttft) for point in profile.prefill])
        # Linear below the shortest prompt, but never below half of its time.
        first, second = self._prefill.xs[0], self._prefill.xs[min(1, len(self._prefill.xs) - 1)]
        steep = (self._prefill.at(second) - self._prefill.at(first)) / (second - first) if second > first else 0.0
        self._at_nothing = max(self._prefill.ys[0] - max(0.0, steep) * first, self._prefill.ys[0] / 2)
        lines: dict[float, list[tuple[float, float]]] = defaultdict(list)
        for point in profile.decode:
            lines[point.context].append((point.kv_tokens, point.itl))
        self._contexts = sorted(lines)
        self._decode = [Line(lines[context]) for context in self._contexts]
        self._one_token = min(point.itl for point in profile.decode)

    def prefill(self, tokens: float) -> float:
        """Seconds for prompt tokens of one iteration."""
        shortest = self._prefill.xs[0]
        if tokens < shortest:
            share = tokens / shortest
            return (self._at_nothing + (self._prefill.ys[0] - self._at_nothing) * share) / 1000
        return self._prefill.at(tokens) / 1000

    def decode(self, batch: float, kv_tokens: float) -> float:
        """Seconds of one token for each of `batch` sequences that together hold `kv_tokens`."""
        contexts = self._contexts
        context = kv_tokens / batch
        if context <= contexts[0] or len(contexts) == 1:
            # Shorter than measured: as many sequences of the shortest measured length cost no less.
            return self._decode[0].at(max(kv_tokens, min(batch * contexts[0], self._decode[0].xs[-1]))) / 1000
        if context >= contexts[-1]:
            return self._decode[-1].at(kv_tokens) / 1000
        i = bisect_right(contexts, context)
        low, high = contexts[i - 1], contexts[i]
        # At equal tokens, the number of sequences is tokens divided by context: linear in its inverse.
        share = (1 / low - 1 / context) / (1 / low - 1 / high)
        below, above = self._decode[i - 1].at(kv_tokens), self._decode[i].at(kv_tokens)
        return (below + (above - below) * share) / 1000

    def mixed(self, prefill_tokens: float, batch: float, kv_tokens: float, *, shared: bool = True) -> float:
        """Seconds of an iteration with prompts and decode tokens; `shared`: both share one read of the weights."""
        if prefill_tokens <= 0:
            return self.decode(batch, kv_tokens)
        if batch <= 0:
            return self.prefill(prefill_tokens)
        once = min(self._at_nothing, self._one_token) / 1000 if shared else 0.0
        return self.prefill(prefill_tokens) + self.decode(batch, kv_tokens) - once
