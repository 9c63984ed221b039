"""dynadmin's view of nodes counts the GPUs of device claims, on a real API server with its scheduler."""

from contextlib import AsyncExitStack
from typing import Any

from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, NODES, RESOURCE_CLAIM_TEMPLATES, ObjectKey
from dynamo_shared.kube import KubeClient

from tests.building.objects import object_of

from .devices import DRIVER, devices_of
from .dynadmin import account, cluster_wide, dynadmin
from .platform import eventually, graph, platform, settings, until_state, worker


def claiming(template: str, replicas: int) -> KubeObject:
    """A worker whose GPUs come from a claim, not from resource limits."""
    made = worker("Worker", replicas=replicas)
    spec = made["podTemplate"]["spec"]
    del spec["containers"][0]["resources"]
    spec["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
    spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": template}]
    return made


async def test_dynadmin_shows_gpus_of_claims_as_in_use_on_their_nodes(
    control_plane: ControlPlane, nats_server: NatsServer, kube: KubeClient, namespace: str
) -> None:
    two = {"name": "gpus", "exactly": {"deviceClassName": DRIVER, "count": 2}}
    spec = {"spec": {"devices": {"requests": [two]}}}
    await kube.create(RESOURCE_CLAIM_TEMPLATES, object_of(RESOURCE_CLAIM_TEMPLATES, "two", namespace, spec=spec))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(devices_of(kube))
        configured = settings(control_plane.kubeconfig, nats_server.url)
        async with platform(configured):
            desired = graph(namespace, "claims", components=[claiming("two", 2)])
            await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, desired)
            await until_state(kube, ObjectKey(namespace, "claims"), "successful")
        api = await stack.enter_async_context(dynadmin(control_plane.kubeconfig, nats_server.url))
        pods = {"verbs": ["list"], "apiGroups": [""], "resources": ["nodes", "pods"]}
        claims = {"verbs": ["list"], "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"]}
        nodes = len(await kube.list(NODES))
        for name, rules in (("sees-pods", [pods]), ("sees-claims", [pods, claims])):
            token = await account(kube, namespace, name)
            await cluster_wide(kube, namespace, name, *rules)

            async def gpus(token: str = token) -> Any:
                return (await api("GET", "/api/v1/capabilities", token=token)).json["gpus"]

            def are_in_use(observed: Any) -> bool:
                return bool(observed) and sum(each["total"] - each["free"] for each in observed["nodes"]) == 4

            # Kubernetes releases claims of earlier tests in its own time.
            observed = await eventually(gpus, "the caller may list nodes, and four GPUs are in use", where=are_in_use)
            assert len(observed["nodes"]) == nodes
            # dynadmin can only be sure if it reads the claims of all namespaces.
            assert observed["exact"] is (claims in rules)
