"""The locations of workers in Kubernetes, by pod and by address. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import has_ended
from dynamo_shared.api.registry import labels

POD_LABELS = (
    labels.SUB_COMPONENT_TYPE,
    labels.COMPONENT_TYPE,
    labels.GRAPH_DEPLOYMENT_NAME,
    labels.COMPONENT,
)
"""Labels of pods that this module reads."""


@dataclass(frozen=True, slots=True)
class WorkerLocation:
    """The location of a worker in Kubernetes."""

    namespace: str
    pod: str = ""
    pod_uid: str = ""
    container: str = ""
    graph: str = ""
    component: str = ""
    worker_type: str = ""
    """the worker type in the pod's labels, for workers whose cards lack it"""


def location_of(pod: KubeObject, container: str = "") -> WorkerLocation:
    """The location of a worker in a pod."""
    metadata = pod["metadata"]
    pod_labels: Mapping[str, str] = metadata.get("labels") or {}
    types = (pod_labels.get(labels.SUB_COMPONENT_TYPE, ""), pod_labels.get(labels.COMPONENT_TYPE, ""))
    return WorkerLocation(
        namespace=metadata.get("namespace", ""),
        pod=metadata["name"],
        pod_uid=metadata.get("uid", ""),
        container=container,
        graph=pod_labels.get(labels.GRAPH_DEPLOYMENT_NAME, ""),
        component=pod_labels.get(labels.COMPONENT, ""),
        worker_type=next((each for each in types if each in ("prefill", "decode")), ""),
    )


def by_address(pods: Iterable[KubeObject]) -> dict[str, WorkerLocation]:
    """Locations by IP address, without pods that have ended (another pod may have the address) or use the host's."""
    locations: dict[str, WorkerLocation] = {}
    for pod in pods:
        status = pod.get("status") or {}
        if has_ended(pod) or pod.get("spec", {}).get("hostNetwork"):
            continue
        for entry in (status, *(status.get("podIPs") or ())):
            address = entry.get("podIP") or entry.get("ip")
            if address:
                locations[address] = location_of(pod)
    return locations


@lru_cache(maxsize=16384)
def host_of(address: str) -> str:
    """Host of `10.0.0.7:9999/...`, `[fd00::7]:9999/...` or `http://10.0.0.7:9999/...`; empty without one."""
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""
