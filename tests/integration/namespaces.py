"""Ends a test's namespace without deleting it, which costs the API server two requests for each kind that it serves."""

from contextlib import suppress

from dynamo_shared.api import resources
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import NotServed

#: Owners before what they own: no controller may create again what is deleted.
IN_THE_WAY: tuple[Resource, ...] = (
    # Of these, the platforms of later tests make pods.
    *(each for each in resources.ALL if each.group == resources.GROUP),
    # Of these, Kubernetes makes pods, which take the nodes' GPUs.
    resources.DEPLOYMENTS,
    resources.JOBS,
    resources.DAEMON_SETS,
    Resource("apps", "v1", "replicasets", "ReplicaSet"),
    Resource("apps", "v1", "statefulsets", "StatefulSet"),
    resources.PODS,
)


async def empty(kube: KubeClient, namespace: str) -> None:
    """Deletes all of a namespace that later tests would meet. The garbage collector deletes what these objects own."""
    for resource in IN_THE_WAY:
        # A key without a name is that of all objects. What runs and has no node's answer would stay for half a minute.
        with suppress(NotServed):
            await kube.delete(resource, ObjectKey(namespace, ""), grace=0 if resource is resources.PODS else None)
