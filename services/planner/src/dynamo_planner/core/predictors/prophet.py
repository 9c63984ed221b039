"""Prophet, fitted again to the last values each time."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from dynamo_planner.core.predictors.base import HISTORY, LoadPredictor
from dynamo_planner.core.predictors.fitting import alone

LEAST_POINTS = 5
START = datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)
"""When the first value is taken to have been; only distances count. Prophet wants times without a zone."""


class ProphetPredictor(LoadPredictor):
    """Trend and seasons of a window of values. Never predicts less than zero. `step` is the interval, seconds."""

    def __init__(self, *, step: float, window: int = 50, use_log1p: bool = False) -> None:
        super().__init__(use_log1p=use_log1p, history=min(window, HISTORY))
        self._step = timedelta(seconds=step)
        self._kept: list[float] = []

    @property
    def next_timestamp(self) -> datetime:
        """When the next value will be."""
        return START + self.steps * self._step

    def _learn(self, value: float) -> None:  # noqa: ARG002 - the window holds it
        self._kept = []

    def _forecast(self, steps: int) -> list[float]:
        if len(self._values) < LEAST_POINTS:
            return [self._values[-1]] * steps
        if len(self._kept) < steps:
            self._kept = [max(0.0, self._outward(value)) for value in self._fit(steps)]
        return self._kept[:steps]

    def _fit(self, steps: int) -> list[float]:
        import pandas as pd  # noqa: PLC0415 - these take seconds, and not every configuration needs them
        from cmdstanpy.utils import get_logger  # noqa: PLC0415
        from prophet import Prophet  # noqa: PLC0415

        first = self.steps - len(self._values)
        times = [START + (first + index) * self._step for index in range(len(self._values))]
        # Intervals of uncertainty are what Prophet spends most of its time on, and nothing reads them.
        model = Prophet(uncertainty_samples=0)
        # They log of each fit that it began and ended; a logger that is only created later would be set to log so again.
        for logger in (get_logger(), logging.getLogger("prophet")):
            logger.setLevel(logging.WARNING)
        coming = [self.next_timestamp + index * self._step for index in range(steps)]
        with alone():
            model.fit(pd.DataFrame({"ds": times, "y": [self._inward(value) for value in self._values]}))
            return [float(value) for value in model.predict(pd.DataFrame({"ds": coming}))["yhat"]]
