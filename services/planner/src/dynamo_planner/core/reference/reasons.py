"""Reasons for the outcome of a tick; the tokens are those of Dynamo's planner (planner.md, sections a.6 and a.11)."""

from enum import StrEnum


class LoadReason(StrEnum):
    """Outcomes of reactive scaling."""

    UNSET = "unset"
    """It did not run at this tick."""
    NO_FPM_DATA = "no_fpm_data"
    """No engine reported a forward pass."""
    SCALING_IN_PROGRESS = "scaling_in_progress"
    WORKER_COUNT_MISMATCH = "worker_count_mismatch"
    """The engines that report differ from the ready ones."""
    INSUFFICIENT_DATA = "insufficient_data"
    """The model of an engine has too few measurements, or its model card lacks a number."""
    NO_CHANGE = "no_change"
    SCALE_UP = "scale_up"
    SCALE_DOWN = "scale_down"
    SCALE_DOWN_CAPPED_BY_THROUGHPUT = "scale_down_capped_by_throughput"
    SCALE_DOWN_REFUSED_CONSOLIDATION = "scale_down_refused_consolidation"
    """The remaining replicas would miss the target."""


class ThroughputReason(StrEnum):
    """Outcomes of predictive scaling."""

    UNSET = "unset"
    """It did not run at this tick."""
    NO_TRAFFIC_DATA = "no_traffic_data"
    PREDICT_FAILED = "predict_failed"
    MODEL_NOT_READY = "model_not_ready"
    PARTNER_NOT_READY = "partner_not_ready"
    """For one pool: it could be planned, but the other pool could not."""
    SET_LOWER_BOUND = "set_lower_bound"
    """Reactive scaling decides; it may not go below what was predicted."""
    SCALE = "scale"
