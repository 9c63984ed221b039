"""The hash of a graph's workers, which names their generation.

It covers what makes a pod different and nothing else: not the replicas, not who owns them, not the version of the
platform that the graph began with, and not the order of lists whose entries have names. A runtime version that the author
states counts where pods get something else by it.
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

#: Fields of a component that say how many pods there are and what places them, not what they are. The roles of a group follow
#: from its nodes, but for templates of their own.
_SCALE = ("replicas", "minAvailable", "scalingAdapter", "roles", "experimental.grove")
#: Of a checkpoint, what is the same for all pods that start from it.
_SAME_FOR_ALL = tuple(
    f"experimental.checkpoint.{name}"
    for name in ("enabled", "startupPolicy", "deletionPolicy", "targetContainerName", "job")
)
#: Features of the runtime that all workers of a version have. Others few have: a platform that learns one must not replace all
#: workers whose author states a version.
_FEATURES = ("canary", "lenient", "compilers")
#: Lists whose entries are identified by name. Init containers run in their order, and later envFrom win: not these.
_UNORDERED = frozenset(
    {"env", "volumes", "ports", "imagePullSecrets", "resourceClaims", "volumeMounts", "volumeDevices"}
)


def worker_hash(workers: Iterable[KubeObject]) -> str:
    """Eight hex digits over the DCD specs of all workers of a graph, before the hash itself is put into them."""
    return digest({spec["name"]: _without_scale(spec) for spec in workers})[:8]


def digest(value: Any) -> str:
    """SHA-256, in hex, of a value in which neither the order of fields counts nor that of lists whose entries have names."""
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
    """A copy without these fields; an object that has none left is as good as absent."""
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
    """A value with the lists whose order does not count in the order of their names."""
    if isinstance(value, dict):
        return {name: canonical(item, name) for name, item in value.items()}
    if isinstance(value, list):
        items = [canonical(item) for item in value]
        if key in _UNORDERED and all(isinstance(item, dict) for item in items):
            # Stable: of two entries of one name the later still wins.
            items.sort(key=lambda item: (str(item.get("name", "")), str(item.get("mountPath", ""))))
        return items
    return value
