"""Applies the rules between fields to a whole pod template without the cluster's published types: for offline checks.

The checks with published types (types, enums, required fields) find more; paths and messages of common findings are the
same.
"""

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.embedded.rules.fields import CORE
from dynamo_shared.api.embedded.rules.objects import OBJECT_RULES
from dynamo_shared.api.probes import PROBES
from dynamo_shared.api.rules import Location, Violations
from dynamo_shared.api.untrusted.reading import entries

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_PROFILES = (("seccompProfile", "SeccompProfile"), ("appArmorProfile", "AppArmorProfile"))
_KEYS = (("items[]", "KeyToPath"),)
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_PODS_NEARBY = ((f"{_REQUIRED}[]", "PodAffinityTerm"), (f"{_PREFERRED}[]", "WeightedPodAffinityTerm"))

#: Fields of a type with objects of other types, or with lists of them (`[]`).
_FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "PodTemplateSpec": (("metadata", "ObjectMeta"), ("spec", "PodSpec")),
    "PodSpec": (
        # A pod of v1alpha1 has its engine in mainContainer.
        ("mainContainer", "Container"),
        ("containers[]", "Container"),
        ("initContainers[]", "Container"),
        ("volumes[]", "Volume"),
        ("tolerations[]", "Toleration"),
        ("topologySpreadConstraints[]", "TopologySpreadConstraint"),
        ("affinity", "Affinity"),
        ("resourceClaims[]", "PodResourceClaim"),
        ("dnsConfig", "PodDNSConfig"),
        ("securityContext", "PodSecurityContext"),
    ),
    "Affinity": (
        ("nodeAffinity", "NodeAffinity"),
        ("podAffinity", "PodAffinity"),
        ("podAntiAffinity", "PodAntiAffinity"),
    ),
    "NodeAffinity": ((_REQUIRED, "NodeSelector"), (f"{_PREFERRED}[]", "PreferredSchedulingTerm")),
    "NodeSelector": (("nodeSelectorTerms[]", "NodeSelectorTerm"),),
    "PreferredSchedulingTerm": (("preference", "NodeSelectorTerm"),),
    "NodeSelectorTerm": (
        ("matchExpressions[]", "NodeSelectorRequirement"),
        ("matchFields[]", "NodeSelectorRequirement"),
    ),
    **dict.fromkeys(("PodAffinity", "PodAntiAffinity"), _PODS_NEARBY),
    "WeightedPodAffinityTerm": (("podAffinityTerm", "PodAffinityTerm"),),
    **dict.fromkeys(("SecurityContext", "PodSecurityContext"), _PROFILES),
    "Container": (
        ("env[]", "EnvVar"),
        ("envFrom[]", "EnvFromSource"),
        ("resources", "ResourceRequirements"),
        *((probe, "Probe") for probe in PROBES),
        ("securityContext", "SecurityContext"),
        ("volumeMounts[]", "VolumeMount"),
        ("lifecycle", "Lifecycle"),
    ),
    "Lifecycle": (("postStart", "LifecycleHandler"), ("preStop", "LifecycleHandler")),
    "EnvVar": (("valueFrom", "EnvVarSource"),),
    "EnvVarSource": (("fieldRef", "ObjectFieldSelector"), ("resourceFieldRef", "ResourceFieldSelector")),
    "Volume": (
        ("configMap", "ConfigMapVolumeSource"),
        ("secret", "SecretVolumeSource"),
        ("hostPath", "HostPathVolumeSource"),
        ("downwardAPI", "DownwardAPIVolumeSource"),
        ("projected", "ProjectedVolumeSource"),
        ("ephemeral", "EphemeralVolumeSource"),
    ),
    **dict.fromkeys(("ConfigMapVolumeSource", "SecretVolumeSource", "ConfigMapProjection", "SecretProjection"), _KEYS),
    "ProjectedVolumeSource": (("sources[]", "VolumeProjection"),),
    "VolumeProjection": (
        ("configMap", "ConfigMapProjection"),
        ("secret", "SecretProjection"),
        ("downwardAPI", "DownwardAPIProjection"),
    ),
    **dict.fromkeys(("DownwardAPIVolumeSource", "DownwardAPIProjection"), (("items[]", "DownwardAPIVolumeFile"),)),
    "DownwardAPIVolumeFile": (("fieldRef", "ObjectFieldSelector"), ("resourceFieldRef", "ResourceFieldSelector")),
}
#: The fields of each type (name, whether it is a list, the type of the objects in it), and its rules.
_TYPES = {
    kind: (
        tuple((field.removesuffix("[]"), field.endswith("[]"), inner) for field, inner in _FIELDS.get(kind, ())),
        OBJECT_RULES.get(_META if kind == "ObjectMeta" else f"{CORE}{kind}", ()),
    )
    for kind in ("PodTemplateSpec", *(inner for fields in _FIELDS.values() for _, inner in fields))
}


def of_template(template: dict[str, Any]) -> Violations:
    """Violations of the rules in a pod template."""
    return _below("PodTemplateSpec", template, ())


def of_pod(pod: dict[str, Any]) -> Violations:
    """Violations of the rules in a pod spec."""
    return _below("PodSpec", pod, ())


def _below(kind: str, value: dict[str, Any], at: Location) -> Iterator[tuple[Location, str]]:
    fields, rules = _TYPES[kind]
    for field, is_list, inner in fields:
        below = value.get(field)
        if below is None:
            continue
        if is_list:
            for index, each in entries(below):
                yield from _below(inner, each, (*at, field, index))
        elif isinstance(below, dict):
            yield from _below(inner, below, (*at, field))
    for rule in rules:
        for location, message in rule(value):
            yield (*at, *location), message
