"""The next interval is as the last one was."""

from dynamo_planner.core.predictors.base import LoadPredictor


class ConstantPredictor(LoadPredictor):
    """Predicts the last value."""

    def _predict(self) -> float:
        return self.values[-1]
