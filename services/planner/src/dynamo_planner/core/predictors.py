"""Predicts load: observed values per interval in, the next values out (planner.md, section a.7)."""

import logging
import threading
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import expm1, isfinite, log1p
from typing import Any

import numpy as np
from dynamo_shared.api.contracts.planner import PlannerConfig, Predictor

logger = logging.getLogger(__name__)

HISTORY = 1024
"""Values that are kept: two days of three-minute intervals. Older ones do not help the prediction and cost time."""


class LoadPredictor(ABC):
    """Predicts the next value of one series, such as requests per interval.

    A value that is not a number counts as 0. Zeros before the first other value are ignored, because a graph without
    requests has no load to learn from. Without values, the prediction is 0. Synchronous, and may compute for seconds:
    never call it on an event loop.
    """

    def __init__(self, *, use_log1p: bool = False, history: int = HISTORY) -> None:
        self.values: deque[float] = deque(maxlen=history)
        """learned values, oldest first"""
        self.steps = 0
        """number of all values ever learned"""
        self.fallback: str | None = None
        """why the last value was returned instead of a forecast, in words; None if there was a forecast"""
        self._log1p = use_log1p
        self._idle = True

    def observe(self, value: float) -> None:
        """Learn the value of an interval that has ended."""
        number = float(value) if isfinite(value) else 0.0
        if self._idle and number == 0:
            return
        self._idle = False
        self.values.append(number)
        self.steps += 1
        self._learn(self._inward(number))

    def end_warmup(self) -> None:
        """The warm-up trace has ended: idle time until the first request is ignored again."""
        self._idle = True

    def predict(self) -> float:
        """The value of the next interval; the last value if the model fails. Repeated calls give the same result."""
        self.fallback = None
        if not self.values:
            return 0.0
        try:
            predicted = self._predict()
            if isfinite(predicted):
                return predicted
            self.fallback = f"{type(self).__name__} predicted {predicted}, which is not a number"
        except Exception as error:
            # Numerical libraries may raise anything: a plan based on the last value is better than none.
            logger.debug("forecast failed", exc_info=True)
            self.fallback = f"{type(self).__name__} failed: {type(error).__name__}: {error}"
        return self.values[-1]

    def _learn(self, value: float) -> None:  # noqa: B027 - most keep no more than the values
        """Learn a value, as the model scales it."""

    @abstractmethod
    def _predict(self) -> float:
        """The next value; called only with at least one value."""

    def _inward(self, value: float) -> float:
        """A value in the model's scale."""
        return log1p(max(value, 0.0)) if self._log1p else value

    def _outward(self, value: float) -> float:
        """A value of the model in the original scale."""
        return expm1(value) if self._log1p else value


class ConstantPredictor(LoadPredictor):
    """Predicts the last value."""

    def _predict(self) -> float:
        return self.values[-1]


FITTED = frozenset({Predictor.ARIMA, Predictor.PROPHET})
"""Predictors that fit models, which takes seconds."""

_ONE = threading.Lock()


@contextmanager
def alone() -> Iterator[None]:
    """Holds the process-wide lock for fitting a model.

    Series are short, so linear algebra on several threads waits more than it computes: on a busy machine with two
    cores, a fit took 28 s, but takes 1 s on one thread. Thread limits and warning filters apply to the whole process,
    hence the lock.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - inspects every library that is loaded

    with _ONE, threadpool_limits(limits=1), warnings.catch_warnings():
        # Warnings about values near the limits of a model are frequent and need no action.
        warnings.simplefilter("ignore")
        yield


FIRST_UNCERTAINTY = 1000.0
"""Variance of the estimate before the first value: large, so that the first values count fully."""


class KalmanPredictor(LoadPredictor):
    """Local linear trend. Begins with the first value, and may predict less than zero.

    `kalman_min_points` of the configuration delays nothing, as in Dynamo's planner.
    """

    def __init__(self, *, q_level: float = 1.0, q_trend: float = 0.1, r: float = 10.0, use_log1p: bool = False) -> None:
        super().__init__(use_log1p=use_log1p)
        self._noise = (q_level, q_trend, r)
        self._filter: Any = None

    def _learn(self, value: float) -> None:
        if self._filter is None:
            self._filter = _filter(value, *self._noise)
            return
        # After enormous values, the state may be infinite, and would stay so.
        with np.errstate(over="ignore", invalid="ignore"):
            self._filter.predict()
            self._filter.update(np.array([value]))
        if not np.isfinite(self._filter.x).all():
            self._filter = _filter(value, *self._noise)

    def _predict(self) -> float:
        # Computed from the state without changing it: repeated calls do not advance time.
        return self._outward(float(np.sum(self._filter.x)))


def _filter(first: float, q_level: float, q_trend: float, r: float) -> Any:
    from filterpy.kalman import KalmanFilter  # noqa: PLC0415 - takes time, and not every configuration needs it

    made = KalmanFilter(dim_x=2, dim_z=1)
    made.F = np.array([[1.0, 1.0], [0.0, 1.0]])
    made.H = np.array([[1.0, 0.0]])
    made.P = np.eye(2) * FIRST_UNCERTAINTY
    made.Q = np.diag([q_level, q_trend])
    made.R = np.array([[r]])
    made.x = np.array([[first], [0.0]])
    return made


LEAST_FITTED = 5
FIRST_AT = datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)
"""The assumed time of the first value; only distances count. Prophet requires times without a time zone."""


class ProphetPredictor(LoadPredictor):
    """Trend and seasonality of a window of values. Never predicts less than zero. `step` is the interval, seconds."""

    def __init__(self, *, step: float, window: int = 50, use_log1p: bool = False) -> None:
        super().__init__(use_log1p=use_log1p, history=min(window, HISTORY))
        self._step = timedelta(seconds=step)

    def _predict(self) -> float:
        return max(0.0, self._outward(self._fitted())) if len(self.values) >= LEAST_FITTED else self.values[-1]

    def _fitted(self) -> float:
        import pandas as pd  # noqa: PLC0415 - these take seconds, and not every configuration needs them
        from cmdstanpy.utils import get_logger  # noqa: PLC0415
        from prophet import Prophet  # noqa: PLC0415

        times = [FIRST_AT + step * self._step for step in range(self.steps - len(self.values), self.steps + 1)]
        # Prophet spends most of its time on uncertainty intervals, which nothing reads.
        model = Prophet(uncertainty_samples=0)
        # These loggers report the beginning and end of each fit; a logger that is created later would have that level
        # again.
        for noisy in (get_logger(), logging.getLogger("prophet")):
            noisy.setLevel(logging.WARNING)
        with alone():
            model.fit(pd.DataFrame({"ds": times[:-1], "y": [self._inward(value) for value in self.values]}))
            return float(model.predict(pd.DataFrame({"ds": times[-1:]}))["yhat"].iloc[0])


LEAST_POINTS = 5
"""With fewer values, no order can be chosen; the prediction is the last value."""
REFIT_AFTER = 480
"""Values after which the model is refitted: a day of three-minute intervals. A model that is only updated grows without
limit, and keeps an order that fitted the first five values.
"""


class ArimaPredictor(LoadPredictor):
    """Fitted once, then updated with new values. Never predicts less than zero.

    If the chosen order is p = q = 0, which ignores the past, the model is fitted to log(1 + x) instead.
    """

    def __init__(self, *, use_log1p: bool = False) -> None:
        super().__init__(use_log1p=use_log1p)
        self._model: Any = None
        self._fitted_log1p = False
        # More values would not be read: the model is then fitted again.
        self._new: deque[float] = deque(maxlen=REFIT_AFTER)
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
            # A model that rejected a value is incomplete; the next prediction fits a new one.
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
        self._new.clear()

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


def make_predictor(config: PlannerConfig) -> LoadPredictor:
    """The predictor of one series that the configuration names."""
    log1p = config.load_predictor_log1p
    match config.load_predictor:
        case Predictor.CONSTANT:
            return ConstantPredictor(use_log1p=log1p)
        case Predictor.ARIMA:
            return ArimaPredictor(use_log1p=log1p)
        case Predictor.KALMAN:
            return KalmanPredictor(
                q_level=config.kalman_q_level, q_trend=config.kalman_q_trend, r=config.kalman_r, use_log1p=log1p
            )
        case Predictor.PROPHET:
            return ProphetPredictor(
                step=config.throughput_adjustment_interval_seconds,
                window=config.prophet_window_size,
                use_log1p=log1p,
            )
