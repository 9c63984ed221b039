"""Fields that the API server removes from an object because its CRD does not define them."""

from typing import Any

from dynamo_shared.api.crds.structural import Schema
from dynamo_shared.api.model import PRESERVE_UNKNOWN
from dynamo_shared.api.rules import Location


def pruned(value: Any, schema: Schema) -> tuple[Any, list[Location]]:
    """The value as the API server stores it with a structural schema, and the locations of removed fields, in document
    order.

    A removed null is not reported. Values of a wrong type stay: validation reports them.
    """
    lost: list[Location] = []
    return _pruned(value, schema, (), lost), lost


def _pruned(value: Any, schema: Schema, at: Location, lost: list[Location]) -> Any:
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [_pruned(item, schema["items"], (*at, index), lost) for index, item in enumerate(value)]
    if not isinstance(value, dict) or schema.get("type", "object") != "object":
        return value
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    result: dict[str, Any] = {}
    for name, item in value.items():
        inner = known.get(name, others if isinstance(others, dict) else None)
        if isinstance(inner, dict):
            result[name] = _pruned(item, inner, (*at, name), lost)
        elif others is True or schema.get(PRESERVE_UNKNOWN):
            result[name] = item
        elif item is not None:
            lost.append((*at, name))
    return result
