"""GPUs of claims on a real API server with its scheduler: in budgets, in planning, and on the nodes that dynadmin shows."""

import json
from contextlib import AsyncExitStack
from typing import Any

from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_planner.app import PlannerService
from dynamo_shared.api.objects import KubeObject, condition
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    NODES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient

from .devices import DRIVER, devices_of
from .dynadmin import account, cluster_wide, dynadmin
from .platform import eventually, graph, platform, settings, until_state, worker
from .test_scale_commands import everything

WHOLE_NODE, FOUR = {"allocationMode": "All"}, {"allocationMode": "ExactCount", "count": 4}


def devices(asked: dict[str, Any]) -> KubeObject:
    return {"devices": {"requests": [{"name": "gpus", "exactly": {"deviceClassName": DRIVER, **asked}}]}}


async def create(kube: KubeClient, resource: Resource, namespace: str, name: str, **content: Any) -> None:
    metadata = {"name": name, "namespace": namespace}
    await kube.create(resource, {**resource.type_meta, "metadata": metadata, **content})


def claiming(by: dict[str, str], replicas: int = 1) -> KubeObject:
    """A worker that claims its GPUs instead of counting them."""
    made = worker("Worker", replicas=replicas)
    spec = made["podTemplate"]["spec"]
    del spec["containers"][0]["resources"]
    spec["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
    spec["resourceClaims"] = [{"name": "gpus", **by}]
    return made


async def test_planning_says_which_claims_it_cannot_plan_with(
    control_plane: ControlPlane, nats_server: NatsServer, kube: KubeClient, namespace: str
) -> None:
    await create(kube, RESOURCE_CLAIMS, namespace, "four", spec=devices(FOUR))
    await create(kube, RESOURCE_CLAIM_TEMPLATES, namespace, "node", spec={"spec": devices(WHOLE_NODE)})
    config = {"mode": "agg", "policy": "reference", "load_predictor": "constant"}
    await create(kube, CONFIG_MAPS, namespace, "plan", data={"planner_config.json": json.dumps(config)})

    async def until_reason(name: str, *reasons: str) -> str:
        async def check() -> KubeObject | None:
            stored = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, name))
            observed = condition(stored, "Planning")
            return observed if observed is not None and observed["reason"] in reasons else None

        return str((await eventually(check, f"{name}: {reasons}"))["message"])

    async with AsyncExitStack() as stack:
        configured = settings(
            control_plane.kubeconfig, nats_server.url, INFRASTRUCTURE__PROMETHEUS_ENDPOINT="http://prometheus.invalid"
        )
        await stack.enter_async_context(platform(configured, [*everything(), PlannerService()]))
        for name, by in (("shares", {"resourceClaimName": "four"}), ("node", {"resourceClaimTemplateName": "node"})):
            desired = graph(namespace, name, components=[claiming(by)])
            desired["metadata"]["annotations"] = {PLANNER_CONFIG: "plan"}
            await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, desired)
        assert "all replicas of Worker share 4 GPUs of ResourceClaim four" in await until_reason("shares", "SharedGpus")
        assert "ResourceClaimTemplate node asks for all devices" in await until_reason("node", "GpusUnknown")
        await stack.enter_async_context(devices_of(kube))
        # It is planned now, and lacks only what Prometheus would report.
        await until_reason("node", "InputMissing", "Holds")


async def test_gpus_of_claims_are_in_use_on_the_nodes_that_dynadmin_shows(
    control_plane: ControlPlane, nats_server: NatsServer, kube: KubeClient, namespace: str
) -> None:
    await create(kube, RESOURCE_CLAIM_TEMPLATES, namespace, "two", spec={"spec": devices({"count": 2})})
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(devices_of(kube))
        configured = settings(control_plane.kubeconfig, nats_server.url)
        async with platform(configured):
            desired = graph(namespace, "claims", components=[claiming({"resourceClaimTemplateName": "two"}, 2)])
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

            # Kubernetes takes away what pods of the tests before claimed in its own time.
            observed = await eventually(gpus, "the caller may list nodes, and four GPUs are in use", where=are_in_use)
            assert len(observed["nodes"]) == nodes
            # To be sure, it takes the claims of all namespaces.
            assert observed["exact"] is (claims in rules)
