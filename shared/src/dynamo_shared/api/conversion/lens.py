"""Carrying a value to another version without loss, for any pair of conversions that each leave something out.

`forward` and `backward` say what both versions can say. What the target can say and the source cannot comes from the
pieces that were kept at the source; what the source says and the target cannot is handed back, to be kept at the target.

Nothing is lost if converting there, back and there again gives what converting there once gives; tests hold that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo_shared.api.conversion.pieces import KEYS, Keys, Pieces, difference, put

Convert = Callable[[Any], Any]

#: Trials to make kept pieces fit a value that was edited, in conversions; a made-up annotation shall not burn time.
MAX_TRIALS = 64


def carry(live: Any, forward: Convert, backward: Convert, kept: Pieces, keys: Keys = KEYS) -> tuple[Any, Pieces]:
    """A value in the other version, and what that version cannot say of it.

    A kept piece counts only as far as it changes nothing that the source says by itself: live fields win.
    """
    target = forward(live)
    seen = backward(target)
    if kept:
        target, seen = _fit(_Fitting(live, target, seen, backward), kept)
    return target, difference(seen, live, keys)


class _Fitting:
    """A target on its way: pieces are tried on it, and stay where the source would look the same."""

    def __init__(self, live: Any, target: Any, seen: Any, backward: Convert) -> None:
        self.target = target
        self.seen = seen
        self.trials = MAX_TRIALS
        self._live = live
        self._backward = backward

    def takes(self, pieces: Pieces) -> bool:
        self.trials -= 1
        candidate = put(self.target, pieces)
        seen = self._backward(candidate)
        if seen not in (self.seen, self._live):
            return False
        self.target, self.seen = candidate, seen
        return True

    def leftover(self, pieces: Pieces) -> Pieces:
        """Put on as many as fit, halving where they do not; those that do not."""
        if self.trials <= 0 or self.takes(pieces):
            return []
        if len(pieces) == 1:
            return pieces
        middle = len(pieces) // 2
        return self.leftover(pieces[:middle]) + self.leftover(pieces[middle:])


def _fit(fitting: _Fitting, kept: Pieces) -> tuple[Any, Any]:
    left = fitting.leftover(kept)
    # One piece may fit only with another that came after it.
    while left and fitting.trials > 0:
        again = fitting.leftover(left)
        if len(again) == len(left):
            break
        left = again
    return fitting.target, fitting.seen
