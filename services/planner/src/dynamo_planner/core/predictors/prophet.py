"""Prophet, fitted again to the last values each time."""

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

    def _predict(self) -> float:
        return max(0.0, self._outward(self._fitted())) if len(self.values) >= LEAST_POINTS else self.values[-1]

    def _fitted(self) -> float:
        import pandas as pd  # noqa: PLC0415 - these take seconds, and not every configuration needs them
        from cmdstanpy.utils import get_logger  # noqa: PLC0415
        from prophet import Prophet  # noqa: PLC0415

        times = [START + step * self._step for step in range(self.steps - len(self.values), self.steps + 1)]
        # Intervals of uncertainty are what Prophet spends most of its time on, and nothing reads them.
        model = Prophet(uncertainty_samples=0)
        # They log of each fit that it began and ended; a logger that is only created later would be set to log so again.
        for logger in (get_logger(), logging.getLogger("prophet")):
            logger.setLevel(logging.WARNING)
        with alone():
            model.fit(pd.DataFrame({"ds": times[:-1], "y": [self._inward(value) for value in self.values]}))
            return float(model.predict(pd.DataFrame({"ds": times[-1:]}))["yhat"].iloc[0])
