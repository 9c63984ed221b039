"""The examples that the seeds print, applied unchanged by kubectl: the whole platform, and pods of KWOK."""

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_admission.app import AdmissionService
from dynamo_ctl import webhooks
from dynamo_devcluster import free_port
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_pod_builder.app import PodBuilderService
from dynamo_profiler.profiling.results import ProfilingRequest, ProfilingResult
from dynamo_profiler.profiling.thorough import read_output
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DYNAMO_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    INGRESSES,
    JOBS,
    NAMESPACES,
    SERVICES,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Service, running
from dynamo_watcher.app import WatcherService

from tests.building.control_plane import prepared

from . import command
from .platform import eventually, settings, until_status
from .test_requests import ControlledProfiler, Profiler

EXAMPLES = Path(__file__).with_name("seed_examples")
SEEDS = Path(__file__).resolve().parents[3] / "shared" / "seeds"


_numbers = itertools.count(1)


def read(asked: ProfilingRequest, data: Mapping[str, str]) -> ProfilingResult:
    """The result of a Job, read as the planner service does."""
    return read_output(asked, data)


@dataclass(frozen=True)
class Cluster:
    kube: KubeClient
    kubectl: Path
    kubeconfig: Path

    async def run(self, *arguments: str) -> tuple[str, str]:
        """The output of kubectl, and its warnings; it must succeed."""
        code, out, err = await command.kubectl(self.kubectl, self.kubeconfig, *arguments)
        assert code == 0, err
        return out, err

    async def apply(self, example: str, namespace: str) -> str:
        """Apply an example unchanged; returns the warnings."""
        _, warnings = await self.run("apply", "-n", namespace, "-f", str(EXAMPLES / f"{example}.yaml"))
        return warnings


@pytest.fixture(scope="module")
async def cluster(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """A control plane with a node of eight GPUs, and all services that the examples need, with webhooks."""
    folder = tmp_path_factory.mktemp("seeds")
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(ControlPlane(await prepared(programs, kwok_nodes=1), programs))
        nats = await stack.enter_async_context(NatsServer(await programs.obtain("nats-server"), folder / "nats"))
        kube = await stack.enter_async_context(
            await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests")
        )
        configured = webhooks.on_loopback(settings(plane.kubeconfig, nats.url), free_port())
        await webhooks.make_namespace(kube, configured)
        parts: list[Service] = [
            WatcherService(),
            PodBuilderService(),
            AdmissionService(),
            Profiler(ControlledProfiler(), read),
        ]
        up = await stack.enter_async_context(running(parts, configured))
        await up.ready()
        yield Cluster(kube, await programs.obtain("kubectl"), plane.kubeconfig)


@pytest.fixture
async def place(cluster: Cluster) -> AsyncIterator[str]:
    """A new namespace with a short name, because names of graphs contain it."""
    name = f"seeds-{next(_numbers)}"
    await cluster.kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await cluster.kube.delete(NAMESPACES, ObjectKey("", name))


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds (../shared/seeds) are not here")
def test_the_example_files_equal_the_printed_examples() -> None:
    printed = "\n".join(file.read_text() for file in SEEDS.glob("*.txt"))
    for file in EXAMPLES.iterdir():
        assert f"```yaml\n{file.read_text()}```" in printed, file.name


def is_successful(status: KubeObject) -> bool:
    return bool(status.get("state") == "successful")


async def test_the_simple_deployment_serves(cluster: Cluster, place: str) -> None:
    warnings = await cluster.apply("simple-deployment", place)
    assert "v1alpha1" in warnings
    graphs, key = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1"), ObjectKey(place, "llama3-70b-agg")
    status = await until_status(cluster.kube, graphs, key, "serves", is_successful)
    assert {name: each["readyReplicas"] for name, each in status["services"].items()} == {
        "Frontend": 1,
        "VllmWorker": 1,
    }
    containers: dict[str, Any] = {}
    for each in await cluster.kube.list(DEPLOYMENTS, place):
        name = each["spec"]["template"]["metadata"]["labels"]["nvidia.com/dynamo-component"]
        containers[name] = each["spec"]["template"]["spec"]["containers"][0]
    image = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.6.1"
    assert {name: each["image"] for name, each in containers.items()} == {"Frontend": image, "VllmWorker": image}
    assert containers["VllmWorker"]["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert containers["VllmWorker"]["args"] == ["python3 -m dynamo.vllm --model Qwen/Qwen3-0.6B"]
    assert any(each["metadata"]["name"].endswith("frontend") for each in await cluster.kube.list(SERVICES, place))
    # The commands of the same page.
    shown, _ = await cluster.run("get", "dgd", "-n", place)
    assert "llama3-70b-agg" in shown
    shown, _ = await cluster.run("get", "dcd", "-n", place)
    assert len(shown.splitlines()) == 3
    shown, _ = await cluster.run("describe", "dgd", "llama3-70b-agg", "-n", place)
    assert "successful" in shown
    shown, _ = await cluster.run("get", "dgd", "-o", "wide", "-n", place)
    assert "llama3-70b-agg" in shown


async def test_the_sla_driven_deployment_is_profiled_by_its_image_and_deployed(cluster: Cluster, place: str) -> None:
    await cluster.apply("sla-driven-deployment", place)
    (profiling,) = await eventually(lambda: cluster.kube.list(JOBS, place), "the profiling Job is created")
    (profiler,) = profiling["spec"]["template"]["spec"]["containers"]
    assert profiler["image"] == "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.6.1"
    await _played_profiler(cluster.kube, place)
    requests, key = DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.at("v1alpha1"), ObjectKey(place, "auto-config-llm")

    def deployed(status: KubeObject) -> bool:
        return is_successful(status.get("deployment") or {})

    status = await until_status(cluster.kube, requests, key, "the graph of the result serves", deployed)
    assert (status["state"], status["backend"]) == ("Ready", "vllm")
    assert status["deployment"] == {
        "state": "successful",
        "name": "auto-config-llm-dgd",
        "namespace": place,
        "created": True,
    }
    assert status["profilingResults"] == "configmap/dgdr-output-auto-config-llm"
    shown, _ = await cluster.run("get", "dynamographdeploymentrequests.v1alpha1.nvidia.com", "-n", place)
    headings, values = shown.splitlines()
    assert headings.split() == ["NAME", "MODEL", "BACKEND", "STATE", "DGD-STATE", "AGE"]
    assert values.split()[:5] == ["auto-config-llm", "Qwen/Qwen3-0.6B", "vllm", "Ready", "successful"]
    await cluster.kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(place, "auto-config-llm-dgd"))
    loss = "the loss of the graph is in its state"
    await until_status(cluster.kube, requests, key, loss, lambda status: status["state"] == "DeploymentDeleted")


@pytest.mark.parametrize(
    ("example", "resource", "successor"),
    [
        (
            "dynamo-deployment",
            "dynamodeployments/disagg",
            "write a DynamoGraphDeployment (dynamoctl convert creates one)",
        ),
        (
            "dynamo-nim-deployment",
            "dynamonimdeployments/test-41fa991-vllmworker",
            "write a DynamoGraphDeployment (dynamoctl convert creates one), or a DynamoComponentDeployment for one "
            "component",
        ),
        (
            "dynamo-nim-request",
            "dynamonimrequests/frontend--jh2o6dqzpsgfued4",
            "write the built image in the pod template of a DynamoGraphDeployment",
        ),
    ],
)
async def test_kinds_before_graphs_are_stored_with_a_warning_that_names_their_successor(
    cluster: Cluster, place: str, example: str, resource: str, successor: str
) -> None:
    assert successor in await cluster.apply(example, place)
    shown, _ = await cluster.run("get", resource, "-n", place, "-o", "name")
    assert shown.strip().endswith(resource.partition("/")[2])


def _condition(status: KubeObject) -> KubeObject:
    """The condition of an object of a kind before graphs; empty before it has one."""
    return next(iter(status.get("conditions", ())), {"status": "", "message": ""})


@pytest.mark.parametrize(
    ("example", "resource", "name"),
    [
        ("dynamo-deployment", DYNAMO_DEPLOYMENTS, "disagg"),
        ("dynamo-nim-deployment", DYNAMO_NIM_DEPLOYMENTS, "test-41fa991-vllmworker"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_an_example_requests_its_image_and_reports_that_no_builder_answers(
    cluster: Cluster, place: str, example: str, resource: Resource, name: str
) -> None:
    await cluster.apply(example, place)
    words = "no image-builder has processed DynamoNimRequest"
    key = ObjectKey(place, name)
    await until_status(cluster.kube, resource, key, words, lambda status: words in _condition(status)["message"])
    request = await cluster.kube.get(DYNAMO_NIM_REQUESTS, ObjectKey(place, "frontend--jh2o6dqzpsgfued4"))
    assert request["spec"] == {"bentoTag": "frontend:jh2o6dqzpsgfued4"}
    assert not await cluster.kube.list(DEPLOYMENTS, place)


async def test_services_of_an_artifact_with_images_run_as_in_the_example(cluster: Cluster, place: str) -> None:
    (written,) = yaml.safe_load_all((EXAMPLES / "dynamo-deployment.yaml").read_text())
    written["metadata"]["namespace"] = place
    for service in written["spec"]["services"].values():
        service["extraPodSpec"] = {"mainContainer": {"image": "built:1"}}
    await cluster.kube.create(DYNAMO_DEPLOYMENTS, written)
    key = ObjectKey(place, "disagg")
    status = await until_status(cluster.kube, DYNAMO_DEPLOYMENTS, key, "all of its services run", is_successful)
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [("Ready", "True")]
    deployments = await cluster.kube.list(DEPLOYMENTS, place)
    replicas = {
        each["spec"]["template"]["metadata"]["labels"]["nvidia.com/dynamo-component"]: each["spec"]["replicas"]
        for each in deployments
    }
    assert replicas == {"Frontend": 1, "Processor": 1, "VllmWorker": 1, "PrefillWorker": 1, "Router": 0}
    for each in deployments:
        variables = {one["name"]: one.get("value") for one in each["spec"]["template"]["spec"]["containers"][0]["env"]}
        assert (variables["GLOBAL_ENV_VAR"], variables["SPECIFIC_ENV_VAR"]) == (
            "some_global_value",
            "some_specific_value",
        )


async def test_a_service_of_an_artifact_runs_with_all_fields_of_the_page(cluster: Cluster, place: str) -> None:
    (written,) = yaml.safe_load_all((EXAMPLES / "dynamo-nim-deployment.yaml").read_text())
    key = ObjectKey(place, "chat")
    written["metadata"] = {"name": key.name, "namespace": place}
    written["spec"] |= {
        "envs": [{"name": "A", "value": "b"}],
        "replicas": 2,
        "labels": {"team": "a"},
        "ingress": {"enabled": True, "host": "chat", "hostSuffix": "example.com"},
        "extraPodSpec": {"mainContainer": {"image": "built:1"}},
    }
    await cluster.kube.create(DYNAMO_NIM_DEPLOYMENTS, written)
    services = DYNAMO_NIM_DEPLOYMENTS
    await until_status(cluster.kube, services, key, "is ready", lambda status: _condition(status)["status"] == "True")
    (deployment,) = await cluster.kube.list(DEPLOYMENTS, place)
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["template"]["metadata"]["labels"]["team"] == "a"
    (main,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (main["image"], main["resources"]["limits"]["nvidia.com/gpu"]) == ("built:1", "1")
    assert main["args"] == ["cd src && uv run dynamo serve --service-name Frontend graphs.disagg:Frontend"]
    (ingress,) = await cluster.kube.list(INGRESSES, place)
    (rule,) = ingress["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]["name"]
    assert (rule["host"], backend) in {
        ("chat.example.com", each["metadata"]["name"]) for each in await cluster.kube.list(SERVICES, place)
    }

    await cluster.kube.merge_patch(DYNAMO_NIM_DEPLOYMENTS, key, {"spec": {"replicas": 0}})
    await eventually(
        lambda: cluster.kube.list(DEPLOYMENTS, place),
        "it has no replicas",
        where=lambda deployments: [each["spec"]["replicas"] for each in deployments] == [0],
    )
    await cluster.kube.delete(DYNAMO_NIM_DEPLOYMENTS, key)
    await eventually(
        lambda: cluster.kube.list(DYNAMO_GRAPH_DEPLOYMENTS, place),
        "its graph went with it",
        where=lambda answer: not answer,
    )


async def _played_profiler(kube: KubeClient, namespace: str) -> None:
    """Write a Job's result as its profiler would: a ConfigMap in the relay's format."""
    request = await kube.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, "auto-config-llm"))
    graph = (EXAMPLES / "simple-deployment.yaml").read_text()
    metadata = {
        "name": "dgdr-output-auto-config-llm",
        "namespace": namespace,
        "labels": {
            "dgdr.nvidia.com/name": "auto-config-llm",
            "dgdr.nvidia.com/namespace": namespace,
            "nvidia.com/managed-by": "dynamo-operator",
        },
        "annotations": {keys.REQUEST_UID: request["metadata"]["uid"]},
    }
    data = {"profiler_status": "success", "phase": "Done", "final_config.yaml": graph}
    await kube.create(CONFIG_MAPS, {**CONFIG_MAPS.type_meta, "metadata": metadata, "data": data})
