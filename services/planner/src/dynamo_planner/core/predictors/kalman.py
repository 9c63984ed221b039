"""A level and its trend, both followed through noise by a Kalman filter (filterpy)."""

from typing import Any

import numpy as np

from dynamo_planner.core.predictors.base import LoadPredictor

FIRST_UNCERTAINTY = 1000.0
"""Variance of the estimate before the first value: large, so that the first values count fully."""


class KalmanPredictor(LoadPredictor):
    """Local linear trend. Begins with the first value, and is not kept from foretelling less than zero.

    `kalman_min_points` of the configuration holds nothing back, as it does not in Dynamo's planner.
    """

    def __init__(self, *, q_level: float = 1.0, q_trend: float = 0.1, r: float = 10.0, use_log1p: bool = False) -> None:
        super().__init__(use_log1p=use_log1p)
        self._noise = (q_level, q_trend, r)
        self._filter: Any = None

    def _learn(self, value: float) -> None:
        if self._filter is None:
            self._filter = _filter(value, *self._noise)
            return
        self._filter.predict()
        self._filter.update(np.array([value]))

    def _predict(self) -> float:
        # Computed of the state, which stays as it is: asking twice does not let time pass.
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
