"""Parts of objects, which the API server has converted for server-side apply, and never stores.

To prune what a manager applies no longer, it has what is left of an object converted to the version of every manager in turn,
and keeps what the answers have. In v1alpha1 one thing may have two places, as the variables of the main container have: the
annotation says which. Without it a part goes to the other place, and what a manager that goes from v1alpha1 to v1beta1 has
just applied is pruned.

Of a part that is empty the API server asks nothing, and no part is empty that has a status. So each object in v1alpha1 has a
status, of which the API server makes its defaults before the first one is written. It is not stored.
"""

from typing import Any

from dynamo_shared.api.conversion import envelope
from dynamo_shared.api.conversion.convert import UNCHANGED
from dynamo_shared.api.conversion.graph import ALPHA
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import GROUP
from dynamo_shared.api.untrusted.reading import mapping

#: With the defaults of the schemas.
_DEFAULT_STATUSES: tuple[dict[str, Any], ...] = ({}, {"state": "initializing"}, {"state": "Initializing"})


def marked(part: dict[str, Any], converted: dict[str, Any]) -> dict[str, Any]:
    """What a part became, with the annotation: the API server takes its value from the whole object, where it has one.

    Whole objects, which have a uid and a specification, are as they were converted, but for an empty status. Kinds that are
    the same in both versions are as they were.
    """
    if converted.get("kind") in UNCHANGED:
        return converted
    metadata = mapping(converted.get("metadata"))
    annotations = metadata.get("annotations") or {}
    if "uid" in metadata and "spec" in converted:
        is_alpha = converted["apiVersion"] == f"{GROUP}/{ALPHA}"
        return {**converted, "status": {}} if is_alpha and "status" not in converted else converted
    if not isinstance(annotations, dict) or PRESERVED_FIELDS in annotations:
        return converted
    mark = envelope.empty(str(part["apiVersion"]).rpartition("/")[2])
    return {**converted, "metadata": {**metadata, "annotations": {**annotations, PRESERVED_FIELDS: mark}}}


def unreported(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without a status that says nothing: the one that `marked` gives it in v1alpha1."""
    is_alpha = obj.get("apiVersion") == f"{GROUP}/{ALPHA}" and obj.get("kind") not in UNCHANGED
    if not is_alpha or obj.get("status") not in _DEFAULT_STATUSES:
        return obj
    return {name: value for name, value in obj.items() if name != "status"}
