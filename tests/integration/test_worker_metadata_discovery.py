"""Worker discovery through Kubernetes: the real runtime registers itself in a real API server.

The pods are KWOK's; for each, a process of the real runtime acts as the pod. Readiness is the pod's.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dynamo_model_discovery.app import ModelDiscoveryService
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_WORKER_METADATAS, PODS, ObjectKey, key_of
from dynamo_shared.kube import KubeClient
from dynamo_watcher.app import WatcherService

from tests.dynamo_runtime.environment import RuntimeEnvironment
from tests.dynamo_runtime.models import tiny_model
from tests.dynamo_runtime.processes import Runtime, as_pod, kubernetes_planes

from .discovered import Heard, deployment, listening, viewing
from .models import set_ready
from .platform import eventually, graph, platform, settings, until_state

pytestmark = pytest.mark.timeout(600)
#: Readiness passes through the EndpointSlice controller, the watcher and NATS.
SOON = 60.0


@pytest.fixture
async def runtime(dynamo_runtime: RuntimeEnvironment, control_plane, namespace: str, tmp_path: Path) -> Runtime:
    """Creates processes that register in that API server."""
    model, planes = await tiny_model(dynamo_runtime, tmp_path / "model"), kubernetes_planes(control_plane.kubeconfig)
    return Runtime(dynamo_runtime, model, planes, tmp_path / "logs", namespace=f"{namespace}-disagg")


@pytest.fixture
async def heard(control_plane, nats_server) -> AsyncIterator[Heard]:
    services: list[Any] = [WatcherService(), PodBuilderService(), ModelDiscoveryService()]
    async with (
        listening(nats_server) as result,
        platform(settings(control_plane.kubeconfig, nats_server.url), services),
    ):
        yield result


async def pod_of(kube: KubeClient, namespace: str, component: str) -> dict[str, Any]:
    async def check() -> dict[str, Any] | None:
        pods = await kube.list(PODS, namespace, label_selector=f"{labels.COMPONENT}={component}")
        return next((pod for pod in pods if pod.get("status", {}).get("phase") == "Running"), None)

    results: dict[str, Any] = await eventually(check, f"a pod of {component}")
    return results


async def test_pods_that_register_themselves(
    kube: KubeClient, namespace: str, nats_server, heard: Heard, runtime: Runtime
) -> None:
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace))
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    prefill, decode = await pod_of(kube, namespace, "Prefill"), await pod_of(kube, namespace, "Decode")
    async with deployment(runtime) as processes, viewing(nats_server) as views:
        await processes.mocker("prefill", environ=as_pod(prefill))
        await processes.mocker("decode", environ=as_pod(decode))
        (available,) = await eventually(lambda: heard.of("model.available"), "the model is available")
        assert (available["namespace"], available["graphDeployment"]) == (namespace, "disagg")
        await eventually(lambda: set(views.workers) == {"prefill", "decode"}, "both in STATE")
        for worker, component, pod in (
            (views.workers["prefill"], "Prefill", prefill),
            (views.workers["decode"], "Decode", decode),
        ):
            assert (worker.namespace, worker.graph_deployment, worker.graph_component) == (
                namespace,
                "disagg",
                component,
            )
            assert (worker.pod, worker.pod_uid) == (pod["metadata"]["name"], pod["metadata"]["uid"])
            assert worker.source == "kubernetes"
            assert worker.models[0].max_kv_tokens == 512 * 16

        # While it is not ready it does not count, whatever its object says; when it is ready again, it is back.
        await set_ready(kube, key_of(decode), False)
        await eventually(lambda: heard.of("worker.left"), "the decode worker left", SOON)
        assert heard.of("worker.left")[0]["pod"] == decode["metadata"]["name"]
        await eventually(
            lambda: [gone["missing"] for gone in heard.of("model.gone")] == [["decode"]], "the model is gone"
        )
        await set_ready(kube, key_of(decode), True)
        await eventually(lambda: len(heard.of("model.available")) == 2, "the model is available again", SOON)

        # An object without data is ignored for a worker whose pod is ready; the other worker leaves after it.
        key = ObjectKey(namespace, decode["metadata"]["name"])
        whole = await kube.get(DYNAMO_WORKER_METADATAS, key)
        await kube.merge_patch(DYNAMO_WORKER_METADATAS, key, {"spec": None})
        await set_ready(kube, key_of(prefill), False)
        await eventually(lambda: len(heard.of("worker.left")) == 2, "the prefill worker left", SOON)
        assert [left["role"] for left in heard.of("worker.left")] == ["decode", "prefill"]
        assert set(heard.workers) == {"decode"}
        await kube.merge_patch(DYNAMO_WORKER_METADATAS, key, {"spec": {"data": whole["spec"]["data"]}})
        await set_ready(kube, key_of(prefill), True)
        await eventually(lambda: set(heard.workers) == {"decode", "prefill"}, "the prefill worker is back", SOON)

        # The pod is deleted, and with it its object.
        await kube.delete(PODS, key_of(decode))
        await eventually(lambda: len(heard.of("worker.left")) == 3, "the decode worker left with its pod", SOON)
