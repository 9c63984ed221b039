"""The hash of a graph's workers, which names their generation.

It covers only what makes a pod different: not replicas, owners, or the version of the platform that created the graph,
and not the order of lists whose entries have names. A stated runtime version counts only if pods get something else
because of it.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import OPERATOR_ORIGIN_VERSION
from dynamo_shared.api.role_templates import ROLES, own_template
from dynamo_shared.api.runtime_version import features_of

#: Fields of a component about the number and placement of pods, not their content. The roles of a group follow from its
#: nodes, except for their own templates.
_SCALE = ("replicas", "minAvailable", "scalingAdapter", "roles", "experimental.grove")
#: Fields of a checkpoint that are the same for all pods that start from it.
_SAME_FOR_ALL = tuple(
    f"experimental.checkpoint.{name}"
    for name in ("enabled", "startupPolicy", "deletionPolicy", "targetContainerName", "job")
)
#: Runtime features that all workers of a version have. Features that few workers have are not listed: when a platform
#: learns one, it must not replace all workers whose author states a version.
_FEATURES = ("canary", "lenient", "compilers")
#: Lists whose entries are identified by name. Init containers and envFrom are not included: the former run in their
#: order, and of the latter the last wins.
_UNORDERED = frozenset(
    {"env", "volumes", "ports", "imagePullSecrets", "resourceClaims", "volumeMounts", "volumeDevices"}
)


def worker_hash(workers: Iterable[KubeObject]) -> str:
    """Eight hex digits over the DCD specs of all workers of a graph, before the hash itself is inserted."""
    return digest({spec["name"]: _without_scale(spec) for spec in workers})[:8]


def digest(value: Any) -> str:
    """SHA-256, in hex, of a value; the order of fields, and of lists whose entries have names, does not count."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _without_scale(spec: KubeObject) -> KubeObject:
    checkpoint = (spec.get("experimental") or {}).get("checkpoint") or {}
    off = ("experimental.checkpoint",) if checkpoint.get("enabled") is False else _SAME_FOR_ALL
    kept = _without(spec, (*_SCALE, *off))
    stated = features_of(kept.pop("runtimeVersionOverride", None))
    if features := {name: True for name in _FEATURES if getattr(stated, name)}:
        kept["runtimeFeatures"] = features
    if "podTemplate" in kept:
        kept["podTemplate"] = _without_origin(kept["podTemplate"])
    own = {role: template for role in ROLES if (template := own_template(spec, role)) is not None}
    if own:
        kept["roleTemplates"] = {role: _without_origin(template) for role, template in own.items()}
    return kept


def _without_origin(template: KubeObject) -> KubeObject:
    annotations = objects.annotations(template)
    if OPERATOR_ORIGIN_VERSION not in annotations:
        return template
    kept = {key: value for key, value in annotations.items() if key != OPERATOR_ORIGIN_VERSION}
    return {**template, "metadata": {**template["metadata"], "annotations": kept}}


def _without(spec: KubeObject, fields: Iterable[str]) -> KubeObject:
    """A copy without these fields; an object that becomes empty is removed."""
    kept = {**spec}
    for field in fields:
        name, _, below = field.partition(".")
        if not below:
            kept.pop(name, None)
        elif isinstance(inner := kept.get(name), dict) and below.partition(".")[0] in inner:
            kept[name] = _without(inner, (below,))
            if not kept[name]:
                del kept[name]
    return kept


def canonical(value: Any, key: str = "") -> Any:
    """A value in which lists whose order does not count are sorted by name."""
    if isinstance(value, dict):
        return {name: canonical(item, name) for name, item in value.items()}
    if isinstance(value, list):
        items = [canonical(item) for item in value]
        if key in _UNORDERED and all(isinstance(item, dict) for item in items):
            # The sort is stable: of two entries with one name, the later still wins.
            items.sort(key=lambda item: (str(item.get("name", "")), str(item.get("mountPath", ""))))
        return items
    return value
