"""Load prediction: case 22 of planner.md, section c.5, and other properties of each predictor."""

import math
from datetime import timedelta
from types import SimpleNamespace

import pytest
from dynamo_planner.core import predictors
from dynamo_planner.core.predictors import (
    FIRST_AT,
    HISTORY,
    ArimaPredictor,
    ConstantPredictor,
    KalmanPredictor,
    ProphetPredictor,
    make_predictor,
)

from tests.unit.planner.core.reference_cases import config

ALL = ["constant", "arima", "kalman", "prophet"]


def fed(predictor, values):
    for value in values:
        predictor.observe(value)
    return predictor


def sine(count: int, level: float = 100, height: float = 50) -> list[float]:
    return [level + height * math.sin(index / 3) for index in range(count)]


class TestCase22:
    def test_constant(self):
        assert fed(ConstantPredictor(), [10, 20, 30]).predict() == 30

    def test_leading_zeros_are_not_data(self):
        predictor = fed(ConstantPredictor(), [0, 0])
        assert not predictor.values
        assert predictor.predict() == 0

    def test_later_zeros_are_data(self):
        predictor = fed(ConstantPredictor(), [5, 0])
        assert len(predictor.values) == 2
        assert predictor.predict() == 0

    def test_a_missing_number_counts_as_zero(self):
        assert fed(ConstantPredictor(), [10, math.nan]).predict() == 0

    def test_prophet_counts_values_that_left_its_window(self):
        predictor = fed(ProphetPredictor(step=180, window=3), [1, 2, 3, 4, 5, 6])
        assert (list(predictor.values), predictor.steps) == ([4, 5, 6], 6)

    @pytest.mark.parametrize(("values", "predicted"), [([10, 20, 30, 40, 50], 59.948), ([100, 100, 100, 200], 232.37)])
    def test_kalman(self, values, predicted):
        assert fed(KalmanPredictor(), values).predict() == pytest.approx(predicted, abs=5e-3)


@pytest.mark.parametrize("name", ALL)
class TestEach:
    def test_each_is_created_by_its_name(self, name):
        assert make_predictor(config(load_predictor=name)).predict() == 0

    def test_a_constant_load_is_predicted_to_go_on(self, name):
        assert fed(make_predictor(config(load_predictor=name)), [42.0] * 8).predict() == pytest.approx(42, rel=0.01)

    def test_predicting_again_gives_the_same_value(self, name):
        predictor = fed(make_predictor(config(load_predictor=name)), [1, 5, 2, 8, 3, 9, 4])
        assert predictor.predict() == predictor.predict()

    def test_idle_time_after_a_warm_up_is_skipped(self, name):
        predictor = fed(make_predictor(config(load_predictor=name)), [7.0] * 6)
        predictor.end_warmup()
        fed(predictor, [0, 0, 0])
        assert predictor.steps == 6
        fed(predictor, [3])
        assert predictor.steps == 7

    def test_the_logarithm_is_reversed(self, name):
        predictor = fed(make_predictor(config(load_predictor=name, load_predictor_log1p=True)), [42.0] * 8)
        assert predictor.predict() == pytest.approx(42, rel=0.01)


class TestKalman:
    def test_it_starts_with_the_first_value(self):
        assert fed(KalmanPredictor(), [10]).predict() == 10

    def test_it_may_predict_negative_values(self):
        assert fed(KalmanPredictor(), [100, 50, 10]).predict() < 0

    def test_it_predicts_again_after_values_that_no_float_can_follow(self):
        """A few enormous values made all later predictions invalid, until the planner was restarted."""
        predictor = fed(KalmanPredictor(), [10.0, 1.7e308, -1.7e308, 1.7e308, *[10.0] * 20])
        assert math.isfinite(predictor.predict())
        assert predictor.fallback is None


class TestArima:
    def test_few_values_predict_the_last(self):
        assert fed(ArimaPredictor(), [1, 9, 2, 8]).predict() == 8

    def test_a_wave_is_followed_and_continues_with_updates(self):
        wave = sine(34)
        predictor = fed(ArimaPredictor(), wave[:30])
        predictor.predict()
        for index in range(30, 33):
            predictor.observe(wave[index])
            assert predictor.predict() == pytest.approx(wave[index + 1], abs=3)

    def test_never_less_than_nothing(self):
        assert fed(ArimaPredictor(), [60, 50, 40, 30, 20, 10, 1]).predict() >= 0

    def test_random_noise_is_fitted_as_logarithms(self, monkeypatch):
        observed = []

        class Model:
            order = (0, 0, 0)

            def __init__(self, values):
                self.values = values

            def predict(self, n_periods):
                return [sum(self.values) / len(self.values)] * n_periods

        def find(values):
            observed.append(values)
            return Model(values)

        monkeypatch.setattr(predictors, "_auto_arima", find)
        values = [3, 9, 4, 8, 5]
        predicted = fed(ArimaPredictor(), values).predict()
        assert observed == [values, [math.log1p(value) for value in values]]
        assert predicted == pytest.approx(math.expm1(sum(observed[1]) / 5))

    def test_a_failing_model_gives_the_last_value_and_reports_it(self, monkeypatch):
        def fail(values):
            raise ValueError("singular")

        monkeypatch.setattr(predictors, "_auto_arima", fail)
        predictor = fed(ArimaPredictor(), [3, 9, 4, 8, 5])
        assert predictor.predict() == 5
        assert predictor.fallback == "ArimaPredictor failed: ValueError: singular"
        monkeypatch.undo()
        assert predictor.predict() >= 0
        assert predictor.fallback is None

    def test_values_that_need_no_model_are_not_collected_without_end(self, monkeypatch):
        """While all kept values are equal, the last one is predicted, for weeks if no request arrives."""
        model = SimpleNamespace(order=(1, 0, 0), predict=lambda n_periods: [1.0], update=lambda values: None)
        monkeypatch.setattr(predictors, "_auto_arima", lambda values: model)
        predictor = fed(ArimaPredictor(), sine(10))
        predictor.predict()
        for _ in range(HISTORY + 2 * predictors.REFIT_AFTER):
            predictor.observe(0.0)
            predictor.predict()
        assert len(predictor._new) <= predictors.REFIT_AFTER

    def test_a_model_is_refitted_after_a_day(self, monkeypatch):
        monkeypatch.setattr(predictors, "REFIT_AFTER", 3)
        predictor = fed(ArimaPredictor(), sine(10))
        predictor.predict()
        first = predictor._model
        fed(predictor, sine(2)).predict()
        assert predictor._model is first
        fed(predictor, sine(2)).predict()
        assert predictor._model is not first


class TestProphet:
    def test_few_values_predict_the_last(self):
        assert fed(ProphetPredictor(step=180), [1, 9, 2, 8]).predict() == 8

    def test_a_trend_continues(self):
        assert fed(ProphetPredictor(step=180), range(10, 110, 5)).predict() == pytest.approx(110, abs=10)

    def test_never_less_than_nothing(self):
        assert fed(ProphetPredictor(step=180), [50, 40, 30, 20, 10, 1]).predict() >= 0

    def test_a_window_limits_the_fitted_values(self, monkeypatch):
        from prophet import Prophet

        fitted: list[tuple[int, timedelta]] = []
        fit = Prophet.fit

        def counted(model, frame):
            fitted.append((len(frame), frame["ds"].iloc[-1].to_pydatetime() - FIRST_AT))
            return fit(model, frame)

        monkeypatch.setattr(Prophet, "fit", counted)
        fed(ProphetPredictor(step=180, window=50), sine(2000)).predict()
        assert fitted == [(50, timedelta(seconds=1999 * 180))]


def test_prophet_fits_no_more_values_than_others_whatever_its_window():
    predictor = ProphetPredictor(step=60, window=10**9)
    for value in range(1, HISTORY + 100):
        predictor.observe(value)
    assert len(predictor.values) == HISTORY
