"""On which nodes pods may run: node selector, required node affinity, and tolerations. Pure.

Rules: Kubernetes' documentation, "Assigning Pods to Nodes" and "Taints and Tolerations".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from dynamo_shared.api.untrusted.reading import below, items, mapping

_EVICTING = frozenset({"NoSchedule", "NoExecute"})
_REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


@dataclass(frozen=True, slots=True)
class NodeRules:
    """The nodes that a pod accepts."""

    selector: dict[str, str] = field(default_factory=dict)
    terms: tuple[dict[str, Any], ...] | None = None
    """required node affinity: a node must match one of these; None: any node does"""
    tolerations: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> Self:
        """The rules in a pod's spec."""
        required = below(pod, _REQUIRED)
        terms = None if required is None else tuple(map(mapping, items(mapping(required).get("nodeSelectorTerms"))))
        return cls(dict(pod.get("nodeSelector") or {}), terms, tuple(pod.get("tolerations") or ()))

    def excluding(self, name: str, labels: Mapping[str, str], taints: Iterable[dict[str, Any]]) -> str:
        """Which rule excludes a node, as the end of "2 nodes ..."; empty if the pod may run there."""
        if any(labels.get(key) != value for key, value in self.selector.items()):
            return "without the labels of the node selector"
        if self.terms is not None and not any(_matches(term, name, labels) for term in self.terms):
            return "excluded by the node affinity"
        for taint in taints:
            if taint.get("effect") in _EVICTING and not any(_tolerates(each, taint) for each in self.tolerations):
                return f"with taint {taint_words(taint)}"
        return ""


#: The rules of a pod without any.
ANY_NODE = NodeRules()


def taint_words(taint: Mapping[str, Any]) -> str:
    """A taint as kubectl writes it: `key=value:effect`."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


def _matches(term: dict[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node meets all requirements of a term; a term without requirements selects no node."""
    of_labels, of_fields = items(term.get("matchExpressions")), items(term.get("matchFields"))
    return bool(of_labels or of_fields) and all(
        _meets(requirement, values)
        for requirements, values in ((of_labels, labels), (of_fields, {"metadata.name": name}))
        for requirement in requirements
    )


def _meets(requirement: dict[str, Any], labels: Mapping[str, str]) -> bool:
    value, listed = labels.get(requirement.get("key", "")), items(requirement.get("values"))
    match requirement.get("operator"):
        case "In":
            return value in listed
        case "NotIn":
            return value not in listed
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return value is not None and _is_beyond(value, listed, above=operator == "Gt")
        case _:
            return False


def _is_beyond(value: str, listed: list[str], *, above: bool) -> bool:
    try:
        (limit,) = map(int, listed)
        return int(value) > limit if above else int(value) < limit
    except ValueError:
        return False


def _tolerates(toleration: dict[str, Any], taint: dict[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")
