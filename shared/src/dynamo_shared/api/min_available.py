"""How many replicas of a component Grove starts together: the component says it, or its override in Grove's own words."""

from collections.abc import Mapping
from typing import Any, Final

from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import integer, mapping

FIELD: Final = "minAvailable"
#: Where an override has it: of a scaling group, and of a clique (Dynamo 1.6, "Configure native minimum availability").
OF_GROUP, OF_CLIQUE = (FIELD,), ("spec", FIELD)


def min_available(component: Mapping[str, Any]) -> int:
    """Replicas of a component that Grove starts together, as it stands in a graph of either version."""
    return integer(mapping_at(component, place(component))) or 1


def place(component: Mapping[str, Any]) -> Location:
    """Path, within the component, of the field that says it; that of the component's own field where none does."""
    inner = ("providerOverride", "value")
    value = mapping_at(component, inner)
    for path in (OF_GROUP, OF_CLIQUE):
        if component.get(FIELD) is None and mapping_at(value, path) is not None:
            return *inner, *path
    return (FIELD,)


def mapping_at(value: Any, path: Location) -> Any:
    """What stands in nested objects at a path; None where one of them is missing or is not an object."""
    for step in path:
        value = mapping(value).get(str(step))
    return value
