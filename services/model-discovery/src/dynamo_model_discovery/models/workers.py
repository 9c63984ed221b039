"""The workers that serve a base model, and which of them may be called.

A worker is a pod in the model's namespace with the label of the base model that the pod-builder writes. Its address comes
from the pod's status, which only the kubelet writes, never from an EndpointSlice: otherwise a user who may write slices
could make the platform call any address. Slices say which of these pods are ready endpoints.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import container_statuses, has_ended, is_active
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.api.untrusted.addresses import in_url, may_be_called, parsed

SERVICE_NAME = "kubernetes.io/service-name"
"""Label of an EndpointSlice: the name of its Service."""


#: Names of PodCliques whose pods are not called: worker ranks, and pods that hold GPU memory. If separate pods hold the
#: memory, each rank is a separate PodClique (operator behaviour, section 1.5).
_GROVE_FOLLOWER = re.compile(r"(.*)-(wkr|gms)(-\d+)?")


@dataclass(frozen=True, slots=True)
class Worker:
    """A pod that serves a base model and may be called."""

    pod: str
    uid: str
    url: str
    """`http://10.0.0.7:9090`; IPv6 in brackets"""
    incarnation: str = ""
    """changes when a container restarts, which unloads all adapters"""
    ready: bool = True
    """whether the pod is ready, also according to an EndpointSlice"""


@dataclass(frozen=True, slots=True)
class WorkerSet:
    """The pods and Services of a base model in a namespace."""

    workers: tuple[Worker, ...] = ()
    services: tuple[str, ...] = ()
    """names of the Services of the EndpointSlices"""
    absent: tuple[tuple[str, str], ...] = ()
    """(pod, reason) of pods that are not a ready endpoint"""

    @property
    def ready(self) -> tuple[Worker, ...]:
        """The ready workers."""
        return tuple(worker for worker in self.workers if worker.ready)


def find_workers(pods: Iterable[KubeObject], slices: Sequence[KubeObject], *, port: int) -> WorkerSet:
    """The workers among the pods of a base model, ordered by name.

    `pods` and `slices`: objects of one namespace with the model's hash. `port`: the port of the LoRA management API.
    """
    endpoints = _ready_endpoints(slices)
    workers: list[Worker] = []
    absent: list[tuple[str, str]] = []
    for pod in sorted(pods, key=lambda each: str(each["metadata"]["name"])):
        name, uid = pod["metadata"]["name"], pod["metadata"].get("uid", "")
        if not is_active(pod) or _is_follower(pod):
            continue
        host, refusal = _host(pod)
        if host is None:
            absent.append((name, refusal))
            continue
        why = _unready(pod, endpoints)
        if why:
            absent.append((name, why))
        workers.append(Worker(name, uid, f"http://{host}:{port}", _incarnation(pod), not why))
    services = {each["metadata"].get("labels", {}).get(SERVICE_NAME, "") for each in slices}
    return WorkerSet(tuple(workers), tuple(sorted(services - {""})), tuple(absent))


def of_pods(each: KubeObject, pods: Collection[ObjectKey]) -> KubeObject:
    """A slice with only the endpoints of these pods."""
    namespace = objects.namespace(each)

    def is_one(endpoint: KubeObject) -> bool:
        return ObjectKey(namespace, (endpoint.get("targetRef") or {}).get("name", "")) in pods

    return {**each, "endpoints": list(filter(is_one, each.get("endpoints") or ()))}


def base_model_of(obj: KubeObject) -> tuple[str, ...]:
    """Index of pods and slices: namespace and hash of the base model, if there is one."""
    metadata = obj["metadata"]
    digest = metadata.get("labels", {}).get(labels.BASE_MODEL_HASH)
    return (index_value(metadata.get("namespace", ""), digest),) if digest else ()


def index_value(namespace: str, digest: str) -> str:
    """The index value of a base model in a namespace."""
    return f"{namespace}/{digest}"


def matters(pod: KubeObject) -> tuple[Any, ...]:
    """The relevant fields of a pod: other changes need no reconcile."""
    status = pod.get("status", {})
    return (
        *base_model_of(pod),
        pod["metadata"].get("uid"),
        is_active(pod),
        objects.is_true(pod, "Ready"),
        status.get("podIP"),
        tuple(entry.get("ip") for entry in status.get("podIPs") or ()),
        _incarnation(pod),
    )


def has_left(old: KubeObject, new: KubeObject) -> bool:
    """Whether a pod has left its address, which may now belong to another pod in any namespace, with other adapters."""
    return has_ended(new) or _addresses(old) != _addresses(new)


def _ready_endpoints(slices: Iterable[KubeObject]) -> dict[tuple[str, str], frozenset[str]]:
    """(pod, uid or "") -> addresses at which slices report it ready. Unknown readiness counts as ready, as Kubernetes
    defines.
    """
    ready: dict[tuple[str, str], set[str]] = {}
    for each in slices:
        namespace = each["metadata"].get("namespace", "")
        for endpoint in each.get("endpoints") or ():
            target = endpoint.get("targetRef") or {}
            if target.get("kind") != PODS.kind or target.get("namespace", namespace) != namespace:
                continue
            if (endpoint.get("conditions") or {}).get("ready") is False:
                continue
            identity = (str(target.get("name", "")), str(target.get("uid", "")))
            ready.setdefault(identity, set()).update(endpoint.get("addresses") or ())
    return {identity: frozenset(addresses) for identity, addresses in ready.items()}


def _unready(pod: KubeObject, endpoints: dict[tuple[str, str], frozenset[str]]) -> str:
    """Why a pod is not a ready endpoint; empty if it is."""
    if not objects.is_true(pod, "Ready"):
        return "it is not ready"
    name, uid = pod["metadata"]["name"], pod["metadata"].get("uid", "")
    listed = endpoints.get((name, uid), frozenset()) | endpoints.get((name, ""), frozenset())
    if listed.isdisjoint(_addresses(pod)):
        return "no EndpointSlice lists it as ready"
    return ""


def _is_follower(pod: KubeObject) -> bool:
    """Whether a pod only helps the serving pod: of a multinode engine, only the leader is called, and loads for all."""
    pod_labels = pod["metadata"].get("labels", {})
    component, clique = (str(pod_labels.get(label, "")) for label in (labels.COMPONENT, labels.GROVE_POD_CLIQUE))
    helps = _GROVE_FOLLOWER.fullmatch(clique)
    return pod_labels.get(labels.ROLE) == "worker" or (helps is not None and helps[1].endswith(f"-{component.lower()}"))


def _addresses(pod: KubeObject) -> list[str]:
    status = pod.get("status", {})
    addresses = [status.get("podIP"), *(entry.get("ip") for entry in status.get("podIPs") or ())]
    return [address for address in addresses if address]


def _host(pod: KubeObject) -> tuple[str | None, str]:
    """The pod's first address in URL form, or None and the reason why it is not called."""
    addresses = _addresses(pod)
    if not addresses:
        return None, "it has no address yet"
    address = parsed(addresses[0])
    if address is None:
        return None, f"its address {addresses[0][:80]!r} is not a valid IP address"
    # Pods never have such addresses: loopback, link-local (metadata of clouds), multicast and others.
    if not may_be_called(address):
        return None, f"its address {address} is not in a pod network, so the platform does not call it"
    return in_url(str(address)), ""


def _incarnation(pod: KubeObject) -> str:
    # Dynamo's runtime may be a sidecar.
    statuses = container_statuses(pod)
    return ",".join(sorted(f"{entry.get('name')}:{entry.get('restartCount', 0)}" for entry in statuses))
