"""GPUs that pods claim through dynamic resource allocation (resource.k8s.io). Pure.

A pod names claims in `spec.resourceClaims`, in one of two ways:

1. By a ResourceClaimTemplate, from which each pod gets its own claim: the GPUs grow with the replicas.
2. By a ResourceClaim, which all pods that name it share: its GPUs count once, for any number of pods.

Most claims state a number of GPUs. The number of a request for all devices of a node is unknown (not 0) until the claim
is allocated.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from dynamo_shared.api.role_templates import all_templates
from dynamo_shared.api.untrusted.reading import items, mapping, text

#: The field of `spec.resourceClaims[]` that names an object, by its resource.
NAMED_BY = {RESOURCE_CLAIM_TEMPLATES: "resourceClaimTemplateName", RESOURCE_CLAIMS: "resourceClaimName"}
#: An object of the pods' namespace by its name; None if absent.
Lookup = Callable[[str], Mapping[str, Any] | None]

_WORDS = frozenset({"gpu", "gpus", "mig"})
"""Words in the name of a DeviceClass for GPUs or slices of GPUs: gpu.nvidia.com, mig.nvidia.com."""
_BOUNDARY = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class KnownClaims:
    """The claims and pods of one component, as far as the caller knows them."""

    template: Lookup
    """the ResourceClaimTemplates"""
    claim: Lookup
    """the ResourceClaims, with their allocation"""
    pods: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    """the pods of the component; their status names the claims that were created for them"""


class NotCounted(StrEnum):
    """Why the GPUs of a claim are unknown."""

    MISSING = "does not exist"
    ALL_OF_A_NODE = "requests all devices of a node, and is not allocated yet"


@dataclass(frozen=True, slots=True)
class UncountedClaim:
    """A claim with an unknown number of GPUs."""

    kind: str
    name: str
    why: NotCounted

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.why}"


@dataclass(frozen=True, slots=True)
class ClaimedGpus:
    """GPUs that the pods of a component claim."""

    own: int = 0
    """GPUs of each pod, by templates"""
    shared: Mapping[str, int] = field(default_factory=dict)
    """GPUs that pods share, by the name of the ResourceClaim"""
    unknown: tuple[UncountedClaim, ...] = ()
    """claims with an unknown number of GPUs"""


_NOTHING = ClaimedGpus()
"""What most pods claim."""


def template_names(pod: Mapping[str, Any]) -> Iterator[str]:
    """Names of the templates in a pod's spec, once for each claim."""
    return (name for _, name in _named(pod, "resourceClaimTemplateName"))


def shared_names(pod: Mapping[str, Any]) -> Iterator[str]:
    """Names of the ResourceClaims that a pod's spec shares with other pods."""
    return (name for _, name in _named(pod, "resourceClaimName"))


def keys_named(resource: Resource, obj: KubeObject) -> list[str]:
    """Keys (`namespace/name`) of the claims, or templates of claims, that pods of a graph or a component deployment name.

    Accepts any value. It is for an index, because a tenant may have thousands of graphs and create many claims.
    """
    spec = mapping(obj.get("spec"))
    return [
        f"{objects.namespace(obj)}/{name}"
        for component in map(mapping, (spec, *items(spec.get("components"))))
        for template in all_templates(component)
        for claim in map(mapping, items(mapping(template.get("spec")).get("resourceClaims")))
        if (name := text(claim.get(NAMED_BY[resource])))
    ]


def created_for(pod: Mapping[str, Any]) -> dict[str, str]:
    """Names of the ResourceClaims that were created for a pod from templates, by their names within the pod."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {each["name"]: each["resourceClaimName"] for each in statuses if each.get("resourceClaimName")}


def of_pods(pod: Mapping[str, Any], known: KnownClaims) -> ClaimedGpus:
    """GPUs that pods with this spec claim."""
    if not pod.get("resourceClaims"):
        return _NOTHING
    own, shared, unknown = 0, {}, []
    # Read at most once: a spec may name thousands of claims, and a component may have thousands of pods.
    created = cache(lambda: _created_claims(known.pods()))
    number_of = cache(partial(_of_template, known, created))
    for claim_name, name in _named(pod, "resourceClaimTemplateName"):
        number = number_of(claim_name, name)
        if isinstance(number, NotCounted):
            unknown.append(UncountedClaim("ResourceClaimTemplate", name, number))
        else:
            own += number
    for name in dict.fromkeys(shared_names(pod)):
        number = of_claim(known.claim(name))
        if isinstance(number, NotCounted):
            unknown.append(UncountedClaim("ResourceClaim", name, number))
        elif number:
            shared[name] = number
    return ClaimedGpus(own, shared, tuple(unknown))


def of_container(pod: Mapping[str, Any], container: Mapping[str, Any], template: Lookup, claim: Lookup) -> ClaimedGpus:
    """GPUs that a container in a pod's spec has through its own and shared claims.

    Only requested GPUs count, not allocated ones: the rendered objects must not change while pods start.
    """
    if not pod.get("resourceClaims"):
        return _NOTHING
    of_pod = {str(each.get("name")): each for each in pod.get("resourceClaims") or ()}
    own, unknown, by_name = 0, [], dict[str, int]()
    uses = {
        (str(each.get("name")), each.get("request")) for each in (container.get("resources") or {}).get("claims") or ()
    }
    for name, request in sorted(uses, key=str):
        entry = of_pod.get(name) or {}
        if by_template := entry.get("resourceClaimTemplateName"):
            kind, named, obj = "ResourceClaimTemplate", str(by_template), template(str(by_template))
            spec = ((obj or {}).get("spec") or {}).get("spec") or {}
        elif shared := entry.get("resourceClaimName"):
            kind, named, obj = "ResourceClaim", str(shared), claim(str(shared))
            spec = (obj or {}).get("spec") or {}
        else:
            continue
        number = _of_requests(each for each in _requests(spec) if request in (None, "", each.get("name")))
        if obj is None or number is None:
            why = NotCounted.MISSING if obj is None else NotCounted.ALL_OF_A_NODE
            unknown.append(UncountedClaim(kind, named, why))
        elif by_template:
            own += number
        else:
            by_name[named] = by_name.get(named, 0) + number
    return ClaimedGpus(own, by_name, tuple(unknown))


def requested(spec: Mapping[str, Any]) -> int | None:
    """GPUs that a claim's spec requests; None if it requests all of a node. Of alternatives the largest counts, because a
    budget must be sufficient for each of them.
    """
    return _of_requests(_requests(spec))


def _of_requests(requests: Iterable[Mapping[str, Any]]) -> int | None:
    numbers = [_of_request(request) for request in requests]
    return None if None in numbers else sum(number or 0 for number in numbers)


def allocated(claim: Mapping[str, Any]) -> int | None:
    """GPUs that are allocated to a ResourceClaim; None before the allocation."""
    allocation = (claim.get("status") or {}).get("allocation")
    if not allocation:
        return None
    gpu_requests = set(_gpu_requests(claim.get("spec") or {}))
    devices = {device_of(each) for each in _results(allocation) if each.get("request") in gpu_requests}
    return len(devices)


def of_claim(claim: Mapping[str, Any] | None) -> int | NotCounted:
    """GPUs of a ResourceClaim: the allocated ones, or else the requested ones."""
    if claim is None:
        return NotCounted.MISSING
    number = allocated(claim)
    if number is None:
        number = requested(claim.get("spec") or {})
    return NotCounted.ALL_OF_A_NODE if number is None else number


def devices_of(claim: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Driver, pool and name of all devices, of any kind, that a ResourceClaim reserves."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (device_of(each) for each in _results(allocation) if not each.get("adminAccess"))


def device_of(result: Mapping[str, Any]) -> tuple[str, str, str]:
    """Driver, pool and name, which identify a device."""
    return str(result.get("driver")), str(result.get("pool")), str(result.get("device"))


def is_gpu_class(name: str) -> bool:
    """Whether a DeviceClass is for GPUs, by its name, because only drivers can evaluate its selectors."""
    return not _WORDS.isdisjoint(_BOUNDARY.split(name.lower()))


def _named(pod: Mapping[str, Any], by: str) -> Iterator[tuple[str, str]]:
    """Claims in a pod's spec: the name within the pod, and the name in the field."""
    for claim in pod.get("resourceClaims") or ():
        if name := claim.get(by):
            yield str(claim.get("name")), str(name)


_CreatedClaims = Mapping[tuple[str, str | None], list[str]]
"""Names of created ResourceClaims by (name within a pod, template); the template is None if the pod does not state it."""


def _of_template(
    known: KnownClaims, created: Callable[[], _CreatedClaims], claim_name: str, name: str
) -> int | NotCounted:
    template = known.template(name)
    number = None if template is None else requested((template.get("spec") or {}).get("spec") or {})
    if number is not None:
        return number
    # Nodes may differ: the next pod may get as many GPUs as the pod with the most.
    claims = (known.claim(given) for by in (name, None) for given in created().get((claim_name, by), ()))
    numbers = [number for claim in claims if claim is not None and (number := allocated(claim)) is not None]
    return max(numbers, default=NotCounted.MISSING if template is None else NotCounted.ALL_OF_A_NODE)


def _created_claims(pods: Iterable[Mapping[str, Any]]) -> _CreatedClaims:
    """The claims that were created for pods. Roles may use different templates for claims of the same name.

    Pods that an older watcher published do not state the templates.
    """
    created: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for pod in pods:
        by = dict(_named(pod.get("spec") or {}, "resourceClaimTemplateName"))
        for claim_name, given in created_for(pod).items():
            created[claim_name, by.get(claim_name)].append(given)
    return created


def _requests(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (spec.get("devices") or {}).get("requests") or ()


def _results(allocation: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (allocation.get("devices") or {}).get("results") or ()


def _gpu_requests(spec: Mapping[str, Any]) -> Iterator[str]:
    """Names of the requests for GPUs as in results of an allocation; for an alternative `request/alternative`."""
    for request in _requests(spec):
        for each in request.get("firstAvailable") or ():
            if _takes_gpus(each):
                yield f"{request.get('name')}/{each.get('name')}"
        if _takes_gpus(request.get("exactly") or {}):
            yield str(request.get("name"))


def _of_request(request: Mapping[str, Any]) -> int | None:
    alternatives = request.get("firstAvailable") or (request.get("exactly") or {},)
    numbers = [_exactly(each) for each in alternatives]
    return None if None in numbers else max(number or 0 for number in numbers)


def _exactly(request: Mapping[str, Any]) -> int | None:
    if not _takes_gpus(request):
        return 0
    if request.get("allocationMode", "ExactCount") != "ExactCount":
        return None
    number = request.get("count", 1)
    return max(0, number) if isinstance(number, int) else 0


def _takes_gpus(request: Mapping[str, Any]) -> bool:
    """Whether a request reserves GPUs; a request with admin access does not."""
    return not request.get("adminAccess") and is_gpu_class(str(request.get("deviceClassName") or ""))
