"""Whether the topology domains that a graph's pods must share exist, by Grove's report (reference behaviour, 1.3)."""

from datetime import datetime

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import Condition, condition_of
from dynamo_shared.api.objects import KubeObject

AVAILABLE = "TopologyLevelsAvailable"
#: Grove's condition has the opposite meaning.
_UNAVAILABLE_BY_GROVE = "TopologyLevelsUnavailable"
_NOT_FOUND_BY_GROVE = "ClusterTopologyNotFound"
_BY_GROVE_REASON: dict[str, tuple[bool, str]] = {
    "True": (False, "TopologyLevelsUnavailable"),
    "False": (True, "AllTopologyLevelsAvailable"),
}


def is_constrained(graph: KubeObject) -> bool:
    """Whether a graph, one of its components or a role names a topology domain."""
    spec = graph.get("spec", {})
    components = spec.get("components", ())
    roles = (role for each in components for role in each.get("roles") or ())
    return any(
        name in part for part in (spec, *components, *roles) for name in ("topologyConstraint", "providerOverride")
    )


def topology_condition(graph: KubeObject, pod_clique_set: KubeObject | None, now: datetime) -> Condition:
    """The graph's condition; unknown until Grove has reconciled its set."""
    of_grove = objects.condition(pod_clique_set, _UNAVAILABLE_BY_GROVE) or {}
    status: bool | None
    status, reason = _BY_GROVE_REASON.get(of_grove.get("status", ""), (None, "TopologyConditionPending"))
    if of_grove.get("reason") == _NOT_FOUND_BY_GROVE:
        status, reason = False, "TopologyDefinitionNotFound"
    message = of_grove.get("message") or "Grove has not yet reported whether the topology's domains exist"
    return condition_of(graph, AVAILABLE, status, reason, message, now=now)
