"""Passes what only v1alpha1 can express from a graph to its component deployments.

It goes into the annotation of conversion, so that a component deployment which a user wrote in v1alpha1 is not a
special case. Labels and annotations of a service are part of the pod template until the graph is rendered: they have
the same effect as those of pods, and the hash of workers covers them.
"""

from collections.abc import Mapping, Set

from dynamo_shared.api.conversion import convert
from dynamo_shared.api.conversion.component import SUBTYPES
from dynamo_shared.api.legacy_fields import ALPHA, LegacyService
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, GROUP
from dynamo_shared.api.role_templates import with_templates

#: The type that v1alpha1 writes for types that it has as sub-types.
_WRITTEN = dict.fromkeys(SUBTYPES, "worker")
#: Annotations that decide how pods are replaced are read from the pod template.
_OF_PLATFORM = f"{GROUP}/"


def with_metadata(template: KubeObject, service: LegacyService) -> KubeObject:
    """A pod template with a service's labels and annotations; its own have priority."""
    metadata = template.get("metadata") or {}
    merged = {
        part: {**beneath, **(metadata.get(part) or {})}
        for part, beneath in (("labels", service.labels), ("annotations", service.annotations))
        if beneath
    }
    return {**template, "metadata": {**metadata, **merged}} if merged else template


def without_metadata(spec: KubeObject, service: LegacyService, kept: Mapping[str, Set[str]]) -> KubeObject:
    """A component's spec without what `with_metadata` added.

    `kept`: names of labels and annotations that stay, because without them the graph's value would apply.
    """
    taken = {
        part: {name for name in beneath if name not in kept[part] and not name.startswith(_OF_PLATFORM)}
        for part, beneath in (("labels", service.labels), ("annotations", service.annotations))
    }

    def change(template: KubeObject) -> KubeObject:
        metadata = dict(template.get("metadata") or {})
        for part, names in taken.items():
            metadata[part] = {key: value for key, value in (metadata.get(part) or {}).items() if key not in names}
        return {**template, "metadata": {key: value for key, value in metadata.items() if value}}

    return with_templates(spec, change) if any(taken.values()) else spec


def with_legacy_fields(component: KubeObject, service: LegacyService) -> KubeObject:
    """A component deployment whose conversion annotation has what its graph's service says beyond v1beta1."""
    kind = component["spec"].get("type") or ""
    missing: KubeObject = {"ingress": service.ingress} if service.ingress is not None else {}
    missing |= {"labels": dict(service.labels)} if service.labels else {}
    missing |= {"annotations": dict(service.annotations)} if service.annotations else {}
    if service.type and service.type != _WRITTEN.get(kind, kind):
        missing["componentType"] = service.type
    if service.part and service.part != kind:
        missing["subComponentType"] = service.part
    if not missing and service.shadows is None:
        return component
    old = convert(component, ALPHA)
    if service.shadows is not None and "failover" in old["spec"]:
        missing["failover"] = {**old["spec"]["failover"], "numShadows": service.shadows}
    return convert({**old, "spec": {**old["spec"], **missing}}, DYNAMO_COMPONENT_DEPLOYMENTS.api_version)
