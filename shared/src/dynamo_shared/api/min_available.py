"""`minAvailable`, the number of replicas of a component that Grove starts together: its field, or a provider override."""

from collections.abc import Mapping
from typing import Any, Final

from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import below, integer

FIELD: Final = "minAvailable"
#: Path of the field in an override of a PodCliqueScalingGroup and of a PodClique (Dynamo 1.6, "Configure native minimum
#: availability").
OF_GROUP, OF_CLIQUE = (FIELD,), ("spec", FIELD)


def min_available(component: Mapping[str, Any]) -> int:
    """The `minAvailable` of a component of a v1alpha1 or v1beta1 graph; 1 without one."""
    return integer(below(component, min_available_path(component))) or 1


def min_available_path(component: Mapping[str, Any]) -> Location:
    """The path of the field within the component: in the override if only that has it, otherwise the component's field."""
    inner = ("providerOverride", "value")
    value = below(component, inner)
    for path in (OF_GROUP, OF_CLIQUE):
        if component.get(FIELD) is None and below(value, path) is not None:
            return *inner, *path
    return (FIELD,)
