"""Reasons for the outcome of a tick."""

from enum import StrEnum


class Reason(StrEnum):
    """Reasons of the policy."""

    SCALE_UP = "scale_up"
    SCALE_DOWN = "scale_down"
    REBALANCE = "rebalance"
    """one pool grows and the other shrinks"""
    IDLE = "idle"
    """no request arrived for a whole interval"""
    NO_CHANGE = "no_change"
    HOLD_STABILIZING = "hold_stabilizing"
    """fewer replicas would suffice, but not yet for long enough, or not for long"""
    HOLD_PENDING = "hold_pending"
    """more are needed, but the cluster has no room for those that are already requested"""
    HOLD_BUDGET = "hold_budget"
    """more are needed than the GPU budget allows"""
    HOLD_TOO_MANY = "hold_too_many"
    """a pool has more replicas than planned"""
    HOLD_MISSING = "hold_missing"
    """an input is missing; the policy does not decide on unknown values"""
    HOLD_CONTRADICTION = "hold_contradiction"
    """no requests are reported, but engines work"""
    HOLD_NOT_READY = "hold_not_ready"
    """too little is known about the engines"""
    NO_TRAFFIC_YET = "no_traffic_yet"
