"""How unlike prompts are, as engines report them: a long one holds up those behind it for longer than two of half its length.

An iteration is observed the more often the longer it takes, so each counts by the inverse of its time.
"""

from math import isfinite

from dynamo_planner.core.observing import ForwardPass, Pool

FORGOTTEN = 0.995
"""What is known counts so much less with each iteration that is observed."""
DOUBTED = 20.0
"""Iterations without which nothing is believed: so many are thought to have been of alike prompts."""
MOST = 2.0
"""The most that is believed, of the squared coefficient of variation: beyond it a few giants are queues of their own."""


class PromptLengths:
    """Moments of the prompts that iterations compute."""

    def __init__(self) -> None:
        self._observed = self._prompts = self._tokens = self._squares = 0.0

    @property
    def variation(self) -> float:
        """Squared coefficient of variation: 0 for prompts that are all alike."""
        if self._tokens <= 0:
            return 0.0
        variation = self._prompts * self._squares / self._tokens**2 - 1
        return min(max(variation, 0.0), MOST) * self._observed / (self._observed + DOUBTED)

    def observe(self, passes: tuple[ForwardPass, ...]) -> None:
        """Take the iterations that compute prompts."""
        for forward in passes:
            work, count = forward.scheduled, forward.scheduled.num_prefill_requests
            if forward.pool is not Pool.PREFILL or count < 1 or work.sum_prefill_tokens <= 0 or forward.wall_time <= 0:
                continue
            squares = count * work.var_prefill_length + work.sum_prefill_tokens**2 / count
            if work.var_prefill_length < 0 or not isfinite(squares / forward.wall_time):
                continue
            self._observed = FORGOTTEN * self._observed + 1
            self._prompts = FORGOTTEN * self._prompts + count / forward.wall_time
            self._tokens = FORGOTTEN * self._tokens + work.sum_prefill_tokens / forward.wall_time
            self._squares = FORGOTTEN * self._squares + squares / forward.wall_time
