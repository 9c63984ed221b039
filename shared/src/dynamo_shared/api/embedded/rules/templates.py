"""The rules between fields over a whole pod template, where no published types are at hand: offline, before any cluster.

A cluster's documents say more (types, enums, required fields); of what both find, the words and places are the same.
"""

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.embedded.rules.fields import CORE
from dynamo_shared.api.embedded.rules.objects import OBJECT_RULES
from dynamo_shared.api.probes import PROBES
from dynamo_shared.api.rules import Location, Violations

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_KEYS = ((("items",), f"{CORE}KeyToPath"),)
_PROFILES = ((("seccompProfile",), f"{CORE}SeccompProfile"), (("appArmorProfile",), f"{CORE}AppArmorProfile"))

_LISTS = frozenset(
    {
        "containers",
        "env",
        "envFrom",
        "initContainers",
        "items",
        "resourceClaims",
        "tolerations",
        "volumeMounts",
        "volumes",
    }
)

#: Fields of a type that hold objects of other types, or lists of them.
_FIELDS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    f"{CORE}PodTemplateSpec": ((("metadata",), _META), (("spec",), f"{CORE}PodSpec")),
    f"{CORE}PodSpec": (
        # A pod of v1alpha1 has its engine in mainContainer.
        (("mainContainer", "containers", "initContainers"), f"{CORE}Container"),
        (("volumes",), f"{CORE}Volume"),
        (("tolerations",), f"{CORE}Toleration"),
        (("resourceClaims",), f"{CORE}PodResourceClaim"),
        (("securityContext",), f"{CORE}PodSecurityContext"),
    ),
    **dict.fromkeys((f"{CORE}SecurityContext", f"{CORE}PodSecurityContext"), _PROFILES),
    f"{CORE}Container": (
        (("env",), f"{CORE}EnvVar"),
        (("envFrom",), f"{CORE}EnvFromSource"),
        (("resources",), f"{CORE}ResourceRequirements"),
        (PROBES, f"{CORE}Probe"),
        (("securityContext",), f"{CORE}SecurityContext"),
        (("volumeMounts",), f"{CORE}VolumeMount"),
        (("lifecycle",), f"{CORE}Lifecycle"),
    ),
    f"{CORE}Lifecycle": ((("postStart", "preStop"), f"{CORE}LifecycleHandler"),),
    f"{CORE}EnvVar": ((("valueFrom",), f"{CORE}EnvVarSource"),),
    f"{CORE}Volume": (
        (("configMap",), f"{CORE}ConfigMapVolumeSource"),
        (("secret",), f"{CORE}SecretVolumeSource"),
        (("hostPath",), f"{CORE}HostPathVolumeSource"),
    ),
    f"{CORE}ConfigMapVolumeSource": _KEYS,
    f"{CORE}SecretVolumeSource": _KEYS,
}


def of_template(template: dict[str, Any]) -> Violations:
    """What is wrong between the fields of a pod template."""
    return _below(f"{CORE}PodTemplateSpec", template, ())


def of_pod(pod: dict[str, Any]) -> Violations:
    """The same of a pod spec."""
    return _below(f"{CORE}PodSpec", pod, ())


def _below(kind: str, value: dict[str, Any], at: Location) -> Iterator[tuple[Location, str]]:
    for names, inner in _FIELDS.get(kind, ()):
        for name in names:
            below = value.get(name)
            if isinstance(below, dict) and name not in _LISTS:
                yield from _below(inner, below, (*at, name))
            for index, each in enumerate(below if isinstance(below, list) and name in _LISTS else ()):
                if isinstance(each, dict):
                    yield from _below(inner, each, (*at, name, index))
    for rule in OBJECT_RULES.get(kind, ()):
        for location, message in rule(value):
            yield (*at, *location), message
