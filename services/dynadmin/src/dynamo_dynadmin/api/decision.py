"""Rows of decisions: events of the planner and of the scaler about one graph, in one format. Pure."""

from typing import Any

import msgspec
from dynamo_shared.wire.specifications.deployment import GRAPH_DEPLOYMENT

PLANS = ("planned", "plan-held")
SCALINGS = ("scale-applied", "scale-held", "scale-refused", "scale-advised")
#: Kind and events of the subscribed subjects.
KIND, EVENTS = GRAPH_DEPLOYMENT, (*PLANS, *SCALINGS)


class _Event(msgspec.Struct):
    id: str
    time: str
    k8suid: str = ""
    causationid: str = ""
    data: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_Event).decode


def row(event: str, payload: bytes, uid: str) -> dict[str, Any] | None:
    """An event as a row; None if it is about an earlier graph of the same name. ValueError if it is not readable."""
    decoded = _decode(payload)
    if uid and decoded.k8suid and decoded.k8suid != uid:
        return None
    data = decoded.data
    components = [each for each in data.get("components") or () if isinstance(each, dict)]
    return {
        "time": decoded.time,
        "event": event,
        "reason": str(data.get("reason") or ""),
        "message": str(data.get("message") or ""),
        "policy": str(data.get("policy") or ""),
        "advisory": bool(data.get("advisory")) or event == "scale-advised",
        "replicas": data.get("replicas") or _counts(components, "allowed"),
        "current": data.get("current") or _counts(components, "current"),
        "inputs": data.get("inputs") or {},
        "predictions": data.get("predictions") or {},
        "missing": data.get("missing") or {},
        "alternatives": data.get("alternatives") or [],
        "budgets": data.get("budgets") or [],
        "command": str(data.get("command") or ("" if event in PLANS else decoded.causationid)),
    }


def _counts(components: list[dict[str, Any]], field: str) -> dict[str, int]:
    return {str(each.get("component")): int(each.get(field) or 0) for each in components}
