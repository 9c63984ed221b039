"""Partial objects, which the API server converts for server-side apply, and never stores.

To prune fields that a manager no longer applies, the API server converts the remaining partial object to the version of
each manager in turn. In v1alpha1 a value may have two equivalent fields, for example variables of the main container;
the annotation says which one. Without the annotation, the value would move to the other field, and the API server would
prune fields that a manager has just applied when it changes from v1alpha1 to v1beta1.

The API server does not convert an empty partial object, but one with a status is never empty. So each v1alpha1 object
has a status, to which the API server adds its defaults. It is not stored. Kubernetes before 1.33 refuses a write of a
status that lacks a required field, even if the write does not change it.
"""

from typing import Any

from dynamo_shared.api.conversion import envelope
from dynamo_shared.api.conversion.convert import UNCHANGED
from dynamo_shared.api.conversion.graph import ALPHA
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, GROUP
from dynamo_shared.api.untrusted.reading import mapping

#: The status of `marked`, if the schema requires a field that has no default.
_NO_STATUS: dict[str, dict[str, Any]] = {DYNAMO_COMPONENT_DEPLOYMENTS.kind: {"conditions": []}}
#: The status of `marked`, without and with the defaults of the schemas.
_DEFAULT_STATUSES = ({}, {"state": "initializing"}, {"state": "Initializing"}, *_NO_STATUS.values())


def marked(part: dict[str, Any], converted: dict[str, Any]) -> dict[str, Any]:
    """The converted form of a partial object, with the annotation; the API server takes its value from the whole
    object.

    A whole object (with uid and spec) is unchanged, except for an empty status in v1alpha1. Kinds with the same schema
    in both versions are unchanged.
    """
    if converted.get("kind") in UNCHANGED:
        return converted
    metadata = mapping(converted.get("metadata"))
    annotations = metadata.get("annotations") or {}
    if "uid" in metadata and "spec" in converted:
        if converted["apiVersion"] != f"{GROUP}/{ALPHA}" or "status" in converted:
            return converted
        return {**converted, "status": _NO_STATUS.get(converted["kind"], {})}
    if not isinstance(annotations, dict) or PRESERVED_FIELDS in annotations:
        return converted
    mark = envelope.empty(str(part["apiVersion"]).rpartition("/")[2])
    return {**converted, "metadata": {**metadata, "annotations": {**annotations, PRESERVED_FIELDS: mark}}}


def unreported(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without the empty status that `marked` adds in v1alpha1."""
    is_alpha = obj.get("apiVersion") == f"{GROUP}/{ALPHA}" and obj.get("kind") not in UNCHANGED
    if not is_alpha or obj.get("status") not in _DEFAULT_STATUSES:
        return obj
    return {name: value for name, value in obj.items() if name != "status"}
