"""How many replicas of a component Grove starts together: the component says it, or its override in Grove's own words."""

from collections.abc import Mapping
from typing import Any, Final

from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import below, integer

FIELD: Final = "minAvailable"
#: Where an override has it: of a scaling group, and of a clique (Dynamo 1.6, "Configure native minimum availability").
OF_GROUP, OF_CLIQUE = (FIELD,), ("spec", FIELD)


def min_available(component: Mapping[str, Any]) -> int:
    """Replicas of a component that Grove starts together, as it stands in a graph of either version."""
    return integer(below(component, place(component))) or 1


def place(component: Mapping[str, Any]) -> Location:
    """Path, within the component, of the field that says it; that of the component's own field where none does."""
    inner = ("providerOverride", "value")
    value = below(component, inner)
    for path in (OF_GROUP, OF_CLIQUE):
        if component.get(FIELD) is None and below(value, path) is not None:
            return *inner, *path
    return (FIELD,)
