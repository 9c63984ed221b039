"""GPUs that containers or pods share, claimed through Dynamic Resource Allocation, not counted by a device plugin."""

from collections.abc import Iterable

from dynamo_shared.api import gpus, quantity
from dynamo_shared.api.containers import main_container
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import RESOURCE_CLAIM_TEMPLATES
from dynamo_shared.api.v1beta1 import ComponentSpec

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.metadata import new_object
from dynamo_pod_builder.render.sharing.spec import memory_service

#: Names of the only request in a claim: the reference's, because drivers and tools may refer to them.
_OF_POD, _OF_RANK = "gpus", "gpu"
#: Nodes with GPUs are tainted. With a device plugin, pods that count GPUs tolerate that; pods that claim GPUs do not.
_TOLERATION = {"key": gpus.NVIDIA_GPU, "operator": "Exists", "effect": "NoSchedule"}


def gpus_of(component: str, template: KubeObject) -> int:
    """GPUs that the main container of a pod template requests. Raises RenderError if it requests none."""
    count = gpus.count(main_container(template) or {})
    if not count:
        raise RenderError(
            component,
            "podTemplate.spec.containers[main].resources.limits",
            "requests no GPU, and the platform claims as many GPUs as it requests",
            f"set {gpus.NVIDIA_GPU} to the number of GPUs that the engine uses",
        )
    return count


def claim_templates(
    graph: str, component: str, namespace: str, spec: ComponentSpec, template: KubeObject, *, owner: KubeObject
) -> list[KubeObject]:
    """ResourceClaimTemplate from which each pod of a component gets its GPUs, if its containers share them.

    As with the reference, it also exists for pods that share GPUs with other pods, which do not use it.
    """
    service = memory_service(spec)
    if service is None:
        return []
    name, count = names.claim_template(graph, component), gpus_of(component, template)
    devices = _devices(_OF_POD, service.device_class_name, count)
    return [new_object(RESOURCE_CLAIM_TEMPLATES, name, namespace, {}, owner=owner, spec={"spec": devices})]


def rank_template(component: str, rank: int, device_class: str, count: int) -> KubeObject:
    """Template in a PodCliqueSet: the GPUs of one rank, which the pods of several cliques share."""
    return {
        "name": names.rank_claim(component, rank),
        "templateSpec": {"metadata": {}, "spec": _devices(_OF_RANK, device_class, count)},
    }


def rank_sharing(component: str, rank: int, cliques: Iterable[str]) -> KubeObject:
    """The cliques that share the GPUs of one rank, in each replica of their scaling group."""
    return {
        "name": names.rank_claim(component, rank),
        "scope": "PerReplica",
        "filter": {"childCliqueNames": list(cliques)},
    }


def without_gpus(container: KubeObject) -> None:
    """Remove GPUs from a container's resources, in place: claimed GPUs must not be counted as well."""
    resources = dict(container.get("resources") or {})
    for side in quantity.SIDES:
        left = {name: amount for name, amount in (resources.pop(side, None) or {}).items() if not gpus.is_gpu(name)}
        if left:
            resources[side] = left
    container["resources"] = resources


def tolerate_gpu_nodes(pod: KubeObject) -> None:
    """Let a pod run on nodes that are tainted for their GPUs, in place."""
    present = pod.get("tolerations") or []
    if _TOLERATION not in present:
        pod["tolerations"] = [*present, {**_TOLERATION}]


def _devices(request: str, device_class: str, count: int) -> KubeObject:
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    return {"devices": {"requests": [{"name": request, "exactly": exactly}]}}
