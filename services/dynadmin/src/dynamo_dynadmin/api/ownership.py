"""Which tool manages an object, and the change as a patch for its repository. Pure."""

from collections.abc import Mapping
from typing import Any

from dynamo_shared.api.objects import KubeObject

#: Labels and annotations by which GitOps tools identify their objects.
_ARGO_CD, _ARGO_CD_INSTANCE = "argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance"
_FLUX = (
    ("kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace", "Kustomization"),
    ("helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace", "HelmRelease"),
)
#: Fields that the API server or controllers write, not users.
_SERVERS = frozenset(
    {"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink", "ownerReferences"}
)


def manager_of(obj: KubeObject) -> str:
    """Argo CD or Flux, with the name of the source that it applies the object from; empty if neither manages it."""
    metadata = obj.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if _ARGO_CD in annotations:
        return f"Argo CD application {str(annotations[_ARGO_CD]).partition(':')[0]}"
    if _ARGO_CD_INSTANCE in labels:
        return f"Argo CD application {labels[_ARGO_CD_INSTANCE]}"
    for name, namespace, kind in _FLUX:
        if name in labels:
            return f"Flux {kind} {labels.get(namespace, '')}/{labels[name]}"
    return ""


def merge_patch(old: Any, new: Any) -> Any:
    """The JSON merge patch (RFC 7386) that changes `old` to `new`; {} if they are equal."""
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
    """A value after a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def patch_to_commit(old: KubeObject, new: Mapping[str, Any]) -> KubeObject:
    """The change that a user requested, as a patch for the repository."""
    patch = merge_patch(manifest_of(old), manifest_of(new))
    return patch if isinstance(patch, dict) else {}


def manifest_of(obj: Mapping[str, Any]) -> KubeObject:
    """The manifest that a user would apply: without status and without fields that the API server writes."""
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name not in _SERVERS}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata}
