"""How what only v1alpha1 can say gets from a graph to its component deployments.

Labels and annotations go into the pod template, the rest into the annotation of conversion, so that a component deployment
which a user wrote in v1alpha1 is not a special case.
"""

from dynamo_shared.api.conversion import convert
from dynamo_shared.api.conversion.component import SUBTYPES
from dynamo_shared.api.legacy_fields import ALPHA, LegacyService
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS

#: What v1alpha1 writes for types that it has as sub-types.
_WRITTEN = dict.fromkeys(SUBTYPES, "worker")


def with_metadata(template: KubeObject, service: LegacyService) -> KubeObject:
    """A pod template with a service's labels and annotations beneath its own."""
    metadata = template.get("metadata") or {}
    merged = {
        part: {**beneath, **(metadata.get(part) or {})}
        for part, beneath in (("labels", service.labels), ("annotations", service.annotations))
        if beneath
    }
    return {**template, "metadata": {**metadata, **merged}} if merged else template


def handed_down(component: KubeObject, service: LegacyService) -> KubeObject:
    """A component deployment with what its graph's service says beyond v1beta1, in the annotation of conversion."""
    kind = component["spec"].get("type") or ""
    missing: KubeObject = {"ingress": service.ingress} if service.ingress is not None else {}
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
