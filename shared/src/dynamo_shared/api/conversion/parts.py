"""Parts of objects, which the API server has converted for server-side apply, and never stores.

To prune what a manager applies no longer, it has what is left of an object converted to the version of every manager in turn,
and keeps what the answers have. In v1alpha1 one thing may have two places, as the variables of the main container have: the
annotation says which. Without it a part goes to the other place, and what a manager that goes from v1alpha1 to v1beta1 has
just applied is pruned.
"""

from __future__ import annotations

from typing import Any

from dynamo_shared.api.conversion import envelope
from dynamo_shared.api.conversion.convert import UNCHANGED
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS


def marked(part: dict[str, Any], converted: dict[str, Any]) -> dict[str, Any]:
    """What a part became, with the annotation: the API server takes its value from the whole object, where it has one.

    Whole objects, which have a uid, are as they were converted. So are kinds that are the same in both versions.
    """
    if converted["kind"] in UNCHANGED:
        return converted
    metadata = converted.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if "uid" in metadata or not isinstance(annotations, dict) or PRESERVED_FIELDS in annotations:
        return converted
    mark = envelope.empty(str(part["apiVersion"]).rpartition("/")[2])
    return {**converted, "metadata": {**metadata, "annotations": {**annotations, PRESERVED_FIELDS: mark}}}
