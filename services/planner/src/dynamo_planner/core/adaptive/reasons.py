"""Why a tick ended as it did."""

from enum import StrEnum


class Reason(StrEnum):
    """Reasons of the policy."""

    SCALE_UP = "scale_up"
    SCALE_DOWN = "scale_down"
    REBALANCE = "rebalance"
    """one pool grows and the other shrinks"""
    IDLE = "idle"
    """no request came for a whole interval"""
    NO_CHANGE = "no_change"
    HOLD_STABILIZING = "hold_stabilizing"
    """fewer replicas would do, but not for long enough, or not for long"""
    HOLD_PENDING = "hold_pending"
    """more are needed, and the cluster has no room for those that are asked for already"""
    HOLD_BUDGET = "hold_budget"
    """more are needed than the GPU budget allows"""
    HOLD_TOO_MANY = "hold_too_many"
    """a pool has more replicas than are planned"""
    HOLD_MISSING = "hold_missing"
    """an input is not there; nothing is decided on what is not known"""
    HOLD_CONTRADICTION = "hold_contradiction"
    """no request is reported, and engines work"""
    HOLD_NOT_READY = "hold_not_ready"
    """too little is known of the engines"""
    NO_TRAFFIC_YET = "no_traffic_yet"
