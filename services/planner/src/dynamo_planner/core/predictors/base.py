"""What all predictors share: which values they see, which they pass over, and what happens when a model fails."""

import logging
from abc import ABC, abstractmethod
from collections import deque
from math import expm1, isfinite, log1p

logger = logging.getLogger(__name__)

HISTORY = 1024
"""Values that are kept: two days of intervals of three minutes. Older ones say nothing of the next interval and cost time."""


class LoadPredictor(ABC):
    """Predicts the next value of one series, such as requests an interval.

    A value that is not a number counts as 0. Zeros before the first other value are passed over: a graph without
    requests has no load to learn from. Without values it predicts 0. Synchronous, and it may compute for seconds: never
    to be called on an event loop.
    """

    def __init__(self, *, use_log1p: bool = False, history: int = HISTORY) -> None:
        self.values: deque[float] = deque(maxlen=history)
        """what was learnt from, oldest first"""
        self.steps = 0
        """how many values were ever learnt from"""
        self.fallback: str | None = None
        """why the last value was given in place of a forecast, in words; None where it was not"""
        self._log1p = use_log1p
        self._idle = True

    def observe(self, value: float) -> None:
        """Learn the value of the interval that ended."""
        number = float(value) if isfinite(value) else 0.0
        if self._idle and number == 0:
            return
        self._idle = False
        self.values.append(number)
        self.steps += 1
        self._learn(self._inward(number))

    def end_warmup(self) -> None:
        """What comes is no longer a trace from before: idle time until the first request is passed over once more."""
        self._idle = True

    def predict(self) -> float:
        """The value of the next interval; the last value where the model fails. Asking again changes nothing."""
        self.fallback = None
        if not self.values:
            return 0.0
        try:
            predicted = self._predict()
            if isfinite(predicted):
                return predicted
            self.fallback = f"{type(self).__name__} predicted {predicted}, which is not a number"
        except Exception as error:
            # Whatever numerical libraries raise: a plan made of the last value is better than none.
            logger.debug("forecast failed", exc_info=True)
            self.fallback = f"{type(self).__name__} failed: {type(error).__name__}: {error}"
        return self.values[-1]

    def _learn(self, value: float) -> None:  # noqa: B027 - most keep no more than the values
        """A value (as the model sees it) is new."""

    @abstractmethod
    def _predict(self) -> float:
        """The next value; there is at least one value."""

    def _inward(self, value: float) -> float:
        """How the model sees a value."""
        return log1p(max(value, 0.0)) if self._log1p else value

    def _outward(self, value: float) -> float:
        """A value of the model as it is meant."""
        return expm1(value) if self._log1p else value
