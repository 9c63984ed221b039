"""ARIMA that chooses its order by itself (pmdarima)."""

from math import expm1, log1p
from typing import Any

import numpy as np

from dynamo_planner.core.predictors.base import LoadPredictor
from dynamo_planner.core.predictors.fitting import alone

LEAST_POINTS = 5
"""With fewer values there is no order to choose; the prediction is the last one."""
REFIT_AFTER = 480
"""Values after which the model is fitted again: a day of intervals of three minutes. Updating one model without end lets it
grow, and keeps an order that was right for the first five values."""


class ArimaPredictor(LoadPredictor):
    """Fitted once, then updated with what is new. Never predicts less than zero.

    Where the order comes out as p = q = 0, so that nothing of the past would count, it is fitted to log(1 + x) instead.
    """

    def __init__(self, *, use_log1p: bool = False) -> None:
        super().__init__(use_log1p=use_log1p)
        self._model: Any = None
        self._fitted_log1p = False
        self._new: list[float] = []
        self._learnt = 0

    def _learn(self, value: float) -> None:
        if self._model is not None:
            self._new.append(value)

    def _predict(self) -> float:
        if len(self.values) < LEAST_POINTS or len(set(self.values)) == 1:
            return self.values[-1]
        try:
            self._bring_up_to_date()
            value = float(np.asarray(self._model.predict(n_periods=1))[0])
        except Exception:
            # A model that could not take a value does not have all of them; the next prediction fits a new one.
            self._model = None
            raise
        return max(0.0, expm1(value) if self._fitted_log1p else self._outward(value))

    def _bring_up_to_date(self) -> None:
        import pmdarima  # noqa: F401, PLC0415 - brings the libraries whose threads are then limited

        with alone():
            if self._model is None or self._learnt + len(self._new) >= REFIT_AFTER:
                self._fit()
            elif self._new:
                self._model.update([log1p(max(value, 0.0)) if self._fitted_log1p else value for value in self._new])
                self._learnt += len(self._new)
        self._new = []

    def _fit(self) -> None:
        values = [self._inward(value) for value in self.values]
        self._fitted_log1p = False
        self._model = _auto_arima(values)
        if not self._log1p and self._model.order[0] == 0 and self._model.order[2] == 0:
            self._fitted_log1p = True
            self._model = _auto_arima([log1p(max(value, 0.0)) for value in values])
        self._learnt = 0


def _auto_arima(values: list[float]) -> Any:
    import pmdarima  # noqa: PLC0415 - takes seconds, and not every configuration needs it

    return pmdarima.auto_arima(values, suppress_warnings=True, error_action="ignore")
