"""GPUs that pods claim through dynamic resource allocation (resource.k8s.io) in place of counting them. Pure.

Pods name claims in `spec.resourceClaims`: by a template, from which each pod gets a claim of its own, or by the name of one claim
that all of them share. Only the first kind grows with replicas, so only that is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: The ResourceClaimTemplate of a name in the pods' namespace; None where there is none.
Templates = Callable[[str], Mapping[str, Any] | None]

_WORDS = frozenset({"gpu", "gpus", "mig"})
"""Words of a DeviceClass's name that say that its devices are GPUs or slices of them: gpu.nvidia.com, mig.nvidia.com."""
_BOUNDARY = re.compile(r"[^a-z0-9]+")


def no_templates(name: str) -> None:
    """Knows none: for those who read nothing but the graph."""


def template_names(pod: Mapping[str, Any]) -> Iterator[str]:
    """Names of the templates that a pod's spec claims by, once for each claim."""
    for claim in pod.get("resourceClaims") or ():
        if name := claim.get("resourceClaimTemplateName"):
            yield str(name)


def claims_by(graph: Mapping[str, Any], name: str) -> bool:
    """Whether pods of a v1beta1 graph claim by a template."""
    components = (graph.get("spec") or {}).get("components") or ()
    pods = ((component.get("podTemplate") or {}).get("spec") or {} for component in components)
    return any(name in template_names(pod) for pod in pods)


def of_pod(pod: Mapping[str, Any], templates: Templates) -> int:
    """GPUs that one pod of a spec claims."""
    return sum(_of_template(templates(name)) for name in template_names(pod))


def count(claim: Mapping[str, Any]) -> int:
    """GPUs of a claim's spec. 0 for what names no number (all devices of a node), and for other devices.

    Of alternatives the largest counts: a budget must hold whichever is allocated.
    """
    requests = (claim.get("devices") or {}).get("requests") or ()
    return sum(_of_request(request) for request in requests)


def is_gpu_class(name: str) -> bool:
    """Whether a DeviceClass is one of GPUs, by its name; what its selectors choose is known to drivers alone."""
    return not _WORDS.isdisjoint(_BOUNDARY.split(name.lower()))


def _of_template(template: Mapping[str, Any] | None) -> int:
    return count(((template or {}).get("spec") or {}).get("spec") or {})


def _of_request(request: Mapping[str, Any]) -> int:
    alternatives = request.get("firstAvailable") or (request.get("exactly") or {},)
    return max(_exactly(each) for each in alternatives)


def _exactly(request: Mapping[str, Any]) -> int:
    if request.get("adminAccess") or not is_gpu_class(str(request.get("deviceClassName") or "")):
        return 0
    if request.get("allocationMode", "ExactCount") != "ExactCount":
        return 0
    number = request.get("count", 1)
    return max(0, number) if isinstance(number, int) else 0
