"""`spec.restart` on a real API server: every pod is replaced, component by component, and nothing else."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import RESTART_AT
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.kube import KubeClient

from .platform import eventually, graph, platform, pod_uids, settings, until_event, until_state


@pytest.fixture
async def running_platform(control_plane: ControlPlane, nats_server: NatsServer) -> AsyncIterator[Any]:
    async with platform(settings(control_plane.kubeconfig, nats_server.url)) as up:
        yield up


async def request_restart(kube: KubeClient, key: ObjectKey, restart: dict[str, Any] | None) -> None:
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"restart": restart}})


async def until_restart(kube: KubeClient, key: ObjectKey, phase: str, id_: str) -> dict[str, Any]:
    async def check() -> dict[str, Any] | None:
        stored = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        restart = stored.get("status", {}).get("restart", {})
        return stored if (restart.get("observedID"), restart.get("phase")) == (id_, phase) else None

    results: dict[str, Any] = await eventually(check, f"restart {id_} {phase}")
    return results


async def deployments(kube: KubeClient, namespace: str) -> dict[str, dict[str, Any]]:
    items = await kube.list(DEPLOYMENTS, namespace)
    return {each["metadata"]["labels"][labels.COMPONENT]: each for each in items}


def ids(observed: dict[str, dict[str, Any]]) -> dict[str, str | None]:
    return {
        name: each["spec"]["template"]["metadata"].get("annotations", {}).get(RESTART_AT)
        for name, each in observed.items()
    }


@pytest.mark.usefixtures("running_platform")
async def test_every_pod_is_replaced_and_no_object_but_pods(kube, namespace):
    key = ObjectKey(namespace, "disagg")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace))
    await until_state(kube, key, "successful")
    before, old_pods = await deployments(kube, namespace), await pod_uids(kube, namespace)

    await request_restart(kube, key, {"id": "first", "strategy": {"type": "Parallel"}})
    await until_restart(kube, key, "Completed", "first")
    done = await until_state(kube, key, "successful")
    after = await deployments(kube, namespace)
    assert ids(after) == {"Frontend": "first", "Prefill": "first", "Decode": "first"}
    assert {name: each["metadata"]["uid"] for name, each in after.items()} == {
        name: each["metadata"]["uid"] for name, each in before.items()
    }, "a restart does not change the generation"
    assert done["status"]["restart"] == {"observedID": "first", "phase": "Completed"}
    assert "rollingUpdate" not in done["status"]

    async def old_pods_are_gone() -> bool:
        return not (await pod_uids(kube, namespace)) & old_pods

    await eventually(old_pods_are_gone, "every pod is replaced")
    await until_event(kube, namespace, "RestartStarted")

    # Removing the restart field rolls nothing.
    await request_restart(kube, key, None)
    stored = await until_state(kube, key, "successful")
    assert stored["status"]["restart"]["phase"] == "Completed"
    now = await deployments(kube, namespace)
    assert {name: each["metadata"]["generation"] for name, each in now.items()} == {
        name: each["metadata"]["generation"] for name, each in after.items()
    }
