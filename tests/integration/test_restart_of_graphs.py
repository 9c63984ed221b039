"""`spec.restart` on a real API server: every pod is replaced, component by component, and nothing else is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import RESTART_AT
from dynamo_shared.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    LEADER_WORKER_SETS,
    PODS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.discovery import install_crds
from dynamo_watcher.app import WatcherService

from .platform import (
    IMAGE,
    eventually,
    frontend,
    graph,
    hold_pods,
    platform,
    pod_uids,
    settings,
    until_event,
    until_state,
    worker,
)
from .test_multinode import DEFINITION


@pytest.fixture
async def running_platform(control_plane: ControlPlane, nats_server: NatsServer) -> AsyncIterator[Any]:
    async with platform(settings(control_plane.kubeconfig, nats_server.url)) as up:
        yield up


async def ask(kube: KubeClient, key: ObjectKey, restart: dict[str, Any] | None) -> None:
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"restart": restart}})


async def until_restart(kube: KubeClient, key: ObjectKey, phase: str, id_: str) -> dict[str, Any]:
    async def check() -> dict[str, Any] | None:
        stored = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        restart = stored.get("status", {}).get("restart", {})
        return stored if (restart.get("observedID"), restart.get("phase")) == (id_, phase) else None

    results: dict[str, Any] = await eventually(check, f"restart {id_} {phase}")
    return results


async def deployments(kube: KubeClient, namespace: str) -> dict[str, dict[str, Any]]:
    items = (await kube.list(DEPLOYMENTS, namespace)).items
    return {each["metadata"]["labels"][labels.COMPONENT]: each for each in items}


def ids(observed: dict[str, dict[str, Any]]) -> dict[str, str | None]:
    return {
        name: each["spec"]["template"]["metadata"].get("annotations", {}).get(RESTART_AT)
        for name, each in observed.items()
    }


@pytest.mark.usefixtures("running_platform")
@pytest.mark.parametrize("type_", ["Sequential", "Parallel"])
async def test_every_pod_is_replaced_and_no_object_but_pods(kube, namespace, type_):
    key = ObjectKey(namespace, "disagg")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace))
    await until_state(kube, key, "successful")
    before, old_pods = await deployments(kube, namespace), await pod_uids(kube, namespace)

    await ask(kube, key, {"id": "first", "strategy": {"type": type_}})
    await until_restart(kube, key, "Completed", "first")
    done = await until_state(kube, key, "successful")
    after = await deployments(kube, namespace)
    assert ids(after) == {"Frontend": "first", "Prefill": "first", "Decode": "first"}
    assert {name: each["metadata"]["uid"] for name, each in after.items()} == {
        name: each["metadata"]["uid"] for name, each in before.items()
    }, "a restart does not change the generation"
    assert done["status"]["restart"] == {"observedID": "first", "phase": "Completed"}
    assert "rollingUpdate" not in done["status"]
    assert not (await pod_uids(kube, namespace)) & old_pods
    await until_event(kube, namespace, "RestartStarted")

    # Taking the restart out rolls nothing.
    await ask(kube, key, None)
    stored = await until_state(kube, key, "successful")
    assert stored["status"]["restart"]["phase"] == "Completed"
    now = await deployments(kube, namespace)
    assert {name: each["metadata"]["generation"] for name, each in now.items()} == {
        name: each["metadata"]["generation"] for name, each in after.items()
    }


async def test_one_at_a_time_through_a_restart_of_the_pod_builder(kube, namespace, control_plane, nats_server):
    key = ObjectKey(namespace, "disagg")
    configured = settings(control_plane.kubeconfig, nats_server.url)
    try:
        async with platform(configured, [WatcherService()]):
            async with platform(configured, [PodBuilderService()]):
                await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace))
                await until_state(kube, key, "successful")
                await hold_pods(kube, True)
                order = ["Prefill", "Decode", "Frontend"]
                await ask(kube, key, {"id": "x", "strategy": {"type": "Sequential", "order": order}})
                stored = await until_restart(kube, key, "Restarting", "x")
                assert stored["status"]["restart"]["inProgress"] == ["Prefill"]
                stored = await until_state(kube, key, "pending")

                async def first_begins() -> bool:
                    return ids(await deployments(kube, namespace))["Prefill"] == "x"

                await eventually(first_begins, "the first component rolls")
            async with platform(configured, [PodBuilderService()]):
                assert ids(await deployments(kube, namespace)) == {"Prefill": "x", "Decode": None, "Frontend": None}
                # Another id in the middle begins with the first again.
                await ask(kube, key, {"id": "y", "strategy": {"type": "Sequential", "order": order}})
                stored = await until_restart(kube, key, "Restarting", "y")
                assert stored["status"]["restart"]["inProgress"] == ["Prefill"]
                await hold_pods(kube, False)
                await until_restart(kube, key, "Completed", "y")
                await until_state(kube, key, "successful")
                assert ids(await deployments(kube, namespace)) == {"Prefill": "y", "Decode": "y", "Frontend": "y"}
    finally:
        await hold_pods(kube, False)


@pytest.mark.usefixtures("running_platform")
async def test_a_rolling_update_supersedes_it(kube, namespace):
    key = ObjectKey(namespace, "disagg")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), worker("Worker")]))
    await until_state(kube, key, "successful")
    changed = [frontend(), worker("Worker", image=f"{IMAGE}-next")]
    await kube.merge_patch(
        DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": changed, "restart": {"id": "in-vain"}}}
    )
    await until_restart(kube, key, "Superseded", "in-vain")
    done = await until_state(kube, key, "successful")
    assert done["status"]["restart"] == {"observedID": "in-vain", "phase": "Superseded"}
    assert ids(await deployments(kube, namespace))["Frontend"] is None
    await until_event(kube, namespace, "RestartSuperseded")


@pytest.mark.usefixtures("running_platform")
async def test_groups_of_nodes_are_renewed_when_their_pods_are(kube, namespace):
    """Right after a change the status of a LeaderWorkerSet still reports the old state."""
    key = ObjectKey(namespace, "wide")
    wide = {**worker("A"), "multinode": {"nodeCount": 2}}
    wider = {**worker("B"), "multinode": {"nodeCount": 2}}
    await install_crds(kube, [DEFINITION])
    try:
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, "wide", components=[wide, wider]))

        async def made() -> list[dict[str, Any]]:
            items = (await kube.list(LEADER_WORKER_SETS, namespace)).items
            return items if len(items) == 2 else []

        for each in await eventually(made, "both sets"):
            await serves(kube, each)
        await until_state(kube, key, "successful")

        async def object_labels() -> dict[str, str | None]:
            items = (await kube.list(LEADER_WORKER_SETS, namespace)).items
            templates = {
                each["metadata"]["labels"][labels.COMPONENT]: each["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
                for each in items
            }
            return {name: each["metadata"].get("annotations", {}).get(RESTART_AT) for name, each in templates.items()}

        await ask(kube, key, {"id": "1"})

        async def first() -> bool:
            return await object_labels() == {"A": "1", "B": None}

        await eventually(first, "the first set changes")
        stored = await until_restart(kube, key, "Restarting", "1")
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, "meanwhile", components=[frontend()]))
        await until_state(kube, ObjectKey(namespace, "meanwhile"), "successful")
        assert await first(), "its status is of before: the second does not begin"
        assert stored["status"]["restart"]["inProgress"] == ["A"]

        name = next(each["metadata"]["name"] for each in await made() if "-a-" in each["metadata"]["name"])
        await kube.create(PODS, pod(namespace, name, "1"))

        async def second() -> bool:
            return await object_labels() == {"A": "1", "B": "1"}

        await eventually(second, "the second set changes")
    finally:
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", str(DEFINITION["metadata"]["name"])))


async def serves(kube: KubeClient, groups: dict[str, Any]) -> None:
    counts = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    available = {"type": "Available", "status": "True", "reason": "x", "message": ""}
    metadata = {"name": groups["metadata"]["name"], "namespace": groups["metadata"]["namespace"]}
    await kube.apply_status(
        LEADER_WORKER_SETS, {**groups, "metadata": metadata, "status": {**counts, "conditions": [available]}}
    )


def pod(namespace: str, groups: str, mark: str) -> dict[str, Any]:
    object_labels = {labels.LWS_NAME: groups, labels.GRAPH_DEPLOYMENT_NAME: "wide", labels.COMPONENT: "A"}
    return {
        **PODS.type_meta,
        "metadata": {
            "name": f"{groups}-0",
            "namespace": namespace,
            "labels": object_labels,
            "annotations": {RESTART_AT: mark, "other": "x"},
        },
        "spec": {"containers": [{"name": "main", "image": IMAGE}]},
    }
