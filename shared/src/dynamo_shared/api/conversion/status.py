"""Converts the status of graphs and components: names of fields, and lists of names instead of one name."""

from typing import Any

COUNTS = (
    "componentKind",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "gpusPerEngine",
    "gpusPerReplica",
)
DEFAULT_STATE = "initializing"
_SAME = ("observedGeneration", "checkpoints", "restart")


def graph_to_beta(status: dict[str, Any]) -> dict[str, Any]:
    """The v1beta1 form of a graph's v1alpha1 status."""
    return _graph(status, ("services", "components"), ("updatedServices", "updatedComponents"), counts_to_beta)


def graph_to_alpha(status: dict[str, Any]) -> dict[str, Any]:
    """The v1alpha1 form of a graph's v1beta1 status."""
    return _graph(status, ("components", "services"), ("updatedComponents", "updatedServices"), counts_to_alpha)


def component_to_beta(status: dict[str, Any]) -> dict[str, Any]:
    """The v1beta1 form of a component deployment's v1alpha1 status."""
    return _component(status, "service", "component", counts_to_beta)


def component_to_alpha(status: dict[str, Any]) -> dict[str, Any]:
    """The v1alpha1 form of a component deployment's v1beta1 status; it always has a list of conditions."""
    return {"conditions": [], **_component(status, "component", "service", counts_to_alpha)}


def counts_to_beta(counts: dict[str, Any]) -> dict[str, Any]:
    """The replica counts of a component, with a list of names, also if there is only one name."""
    result = {name: counts[name] for name in COUNTS if name in counts}
    names, first = counts.get("componentNames"), counts.get("componentName")
    if isinstance(names, list) and names:
        result["componentNames"] = names
    elif isinstance(first, str) and first:
        result["componentNames"] = [first]
    return result


def counts_to_alpha(counts: dict[str, Any]) -> dict[str, Any]:
    """The replica counts of a service, with the first name, which v1alpha1 requires."""
    result = {name: counts[name] for name in COUNTS if name in counts}
    names = counts.get("componentNames")
    result["componentName"] = ""
    if isinstance(names, list) and names:
        result["componentNames"] = names
        if isinstance(names[0], str):
            result["componentName"] = names[0]
    return result


def conditions_of(status: dict[str, Any]) -> list[Any] | None:
    """The conditions, without duplicates of a type, which v1beta1 does not allow; None without a list."""
    conditions = status.get("conditions")
    if not isinstance(conditions, list):
        return None
    known: set[str] = set()
    result: list[Any] = []
    for each in conditions:
        kind = each.get("type") if isinstance(each, dict) else None
        if isinstance(kind, str) and kind not in known:
            known.add(kind)
            result.append(each)
    return result


def _common(status: dict[str, Any]) -> dict[str, Any]:
    result = {name: status[name] for name in _SAME if name in status}
    conditions = conditions_of(status)
    if conditions is not None:
        result["conditions"] = conditions
    return result


def _graph(status: dict[str, Any], parts: tuple[str, str], updated: tuple[str, str], counts: Any) -> dict[str, Any]:
    result = {"state": status.get("state", DEFAULT_STATE), **_common(status)}
    old, new = parts
    components = status.get(old)
    if isinstance(components, dict):
        result[new] = {name: counts(each) for name, each in components.items() if isinstance(each, dict)}
    rolling = status.get("rollingUpdate")
    if isinstance(rolling, dict):
        old, new = updated
        result["rollingUpdate"] = {
            (new if name == old else name): value for name, value in rolling.items() if name != new
        }
    return result


def _component(status: dict[str, Any], old: str, new: str, counts: Any) -> dict[str, Any]:
    result = _common(status)
    component = status.get(old)
    if isinstance(component, dict):
        result[new] = counts(component)
    return result
