"""The predictor that a configuration names."""

from dynamo_shared.api.contracts.planner import PlannerConfig, Predictor

from dynamo_planner.core.predictors.arima import ArimaPredictor
from dynamo_planner.core.predictors.base import LoadPredictor
from dynamo_planner.core.predictors.constant import ConstantPredictor
from dynamo_planner.core.predictors.kalman import KalmanPredictor
from dynamo_planner.core.predictors.prophet import ProphetPredictor


def make_predictor(config: PlannerConfig) -> LoadPredictor:
    """A predictor of one series as the configuration wants it."""
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
