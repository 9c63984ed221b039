"""Predicting load: a number an interval goes in, the next ones come out (planner.md, section a.7)."""

from dynamo_planner.core.predictors.base import LoadPredictor
from dynamo_planner.core.predictors.create import make_predictor

__all__ = ["LoadPredictor", "make_predictor"]
