"""Empties a test's namespace. Deleting it would cost the API server two requests for each kind that it serves."""

from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api import resources
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube import KubeClient

from .etcd import stored

#: Owners come first, so that no controller recreates what is deleted.
IN_THE_WAY: tuple[tuple[Resource, ...], ...] = (
    # Platforms of later tests would create pods for these.
    tuple(each for each in resources.ALL if each.group == resources.GROUP),
    # Kubernetes creates pods for these, which would occupy the nodes' GPUs.
    (
        resources.DEPLOYMENTS,
        resources.JOBS,
        resources.DAEMON_SETS,
        Resource("apps", "v1", "replicasets", "ReplicaSet"),
        Resource("apps", "v1", "statefulsets", "StatefulSet"),
        resources.PODS,
    ),
)


async def empty(plane: ControlPlane, kube: KubeClient, namespace: str) -> None:
    """Delete everything that would affect later tests. The garbage collector deletes what these objects own."""
    for kinds in IN_THE_WAY:
        for resource in await stored(plane, namespace, kinds):
            # A key without a name means all objects. Running pods without a kubelet would stay for half a minute.
            await kube.delete(resource, ObjectKey(namespace, ""), grace=0 if resource is resources.PODS else None)
