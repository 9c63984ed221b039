"""Who else manages an object, and the change as a patch for them. Pure."""

from collections.abc import Mapping
from typing import Any

from dynamo_shared.api.objects import KubeObject

#: Labels and annotations by which tools that apply from a repository know their objects.
_ARGO_CD = ("argocd.argoproj.io/tracking-id",)
_ARGO_CD_INSTANCE = "argocd.argoproj.io/instance"
_FLUX = (
    ("kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace", "Kustomization"),
    ("helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace", "HelmRelease"),
)
#: Written by the API server, or by controllers: no part of what a user wants.
_SERVERS = frozenset(
    {"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink", "ownerReferences"}
)


def manager_of(obj: KubeObject) -> str:
    """Argo CD or Flux with the name of what it applies the object from; empty where neither manages it."""
    metadata = obj.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    for key in _ARGO_CD:
        if key in annotations:
            return f"Argo CD application {str(annotations[key]).partition(':')[0]}"
    if _ARGO_CD_INSTANCE in labels:
        return f"Argo CD application {labels[_ARGO_CD_INSTANCE]}"
    for name, namespace, kind in _FLUX:
        if name in labels:
            return f"Flux {kind} {labels.get(namespace, '')}/{labels[name]}"
    return ""


def merge_patch(old: Any, new: Any) -> Any:
    """The JSON merge patch (RFC 7386) that makes `new` of `old`; {} where nothing differs."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif old[key] != value:
            patch[key] = merge_patch(old[key], value)
    return patch


def merged(old: Any, patch: Any) -> Any:
    """What a JSON merge patch makes of a value."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def to_commit(old: KubeObject, new: Mapping[str, Any]) -> KubeObject:
    """The change that a user wants, as a patch for the repository."""
    patch = merge_patch(manifest_of(old), manifest_of(new))
    return patch if isinstance(patch, dict) else {}


def manifest_of(obj: Mapping[str, Any]) -> KubeObject:
    """What a user would apply: without status and without what the API server writes."""
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name not in _SERVERS}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata}
