"""All ways to scale, with webhooks: kubectl, the real HPA controller with a metrics API, and a client like KEDA.

The platform and the users of this control plane share an account that is not one of the platform's. Admission allows
the scaler's writes to graphs because they match the adapters.
"""

import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dynamo_ctl.commands.crds.definitions import install_definitions
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_pod_builder.app import PodBuilderService
from dynamo_scaler.app import ScalerService
from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import AUTOSCALING
from dynamo_shared.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    PODS,
    SCALED_OBJECTS,
    ObjectKey,
)
from dynamo_shared.kube import Conflict, Invalid, KubeClient
from dynamo_shared.runtime import Service
from dynamo_watcher.app import WatcherService

from tests.building.control_plane import prepared
from tests.building.definitions import definition_of

from . import command
from .admission import admission_platform
from .metrics_api import Load, metrics_api
from .platform import eventually, frontend, gone, graph, until_object, until_state, until_status, worker

ADAPTERS = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
Kubectl = Callable[..., Any]
#: By default HPAs sync every 15 s, and wait 5 min before they scale down.
FAST = ("--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-downscale-stabilization=1s")
TRIGGERS = [{"type": "prometheus", "metadata": {"query": "up", "threshold": "1"}}]


async def install(kubeconfig: Path) -> None:
    """Install the platform's kinds, and KEDA's custom resource."""
    await install_definitions(kubeconfig)
    async with await KubeClient.open(kubeconfig=kubeconfig, field_manager="dynamo-tests") as kube:
        await kube.create(CUSTOM_RESOURCE_DEFINITIONS, definition_of(SCALED_OBJECTS))


@pytest.fixture(scope="module")
async def plane(programs: Programs) -> AsyncIterator[ControlPlane]:
    options = await prepared(programs, prepare=install, controller_manager_arguments=FAST)
    async with ControlPlane(options, programs) as up:
        yield up


@pytest.fixture(scope="module")
async def user(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as client:
        yield client


@pytest.fixture(scope="module")
async def load(plane: ControlPlane, user: KubeClient) -> AsyncIterator[Load]:
    async with metrics_api(plane, user) as result:
        yield result


@pytest.fixture(scope="module")
async def everything(plane: ControlPlane, programs: Programs, tmp_path_factory: Any) -> AsyncIterator[None]:
    """All services, including admission with its webhooks."""
    folder = tmp_path_factory.mktemp("nats")
    async with NatsServer(await programs.obtain("nats-server"), folder) as nats:
        parts: list[Service] = [WatcherService(), PodBuilderService(), ScalerService()]
        async with admission_platform(plane, parts=parts, PLATFORM__NATS__SERVERS=nats.url):
            yield


@pytest.fixture
async def place(user: KubeClient, everything: None, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    name = request.node.name.replace("_", "-").removeprefix("test-")[:40].rstrip("-")
    await user.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await user.delete(NAMESPACES, ObjectKey("", name))


@pytest.fixture
async def kubectl(programs: Programs, plane: ControlPlane, place: str) -> Kubectl:
    program = await programs.obtain("kubectl")

    async def run(*arguments: str) -> str:
        code, out, err = await command.kubectl(program, plane.kubeconfig, f"--namespace={place}", *arguments)
        assert code == 0, err
        return out + err

    return run


def adapted(namespace: str, rules: Any = None, replicas: int = 1) -> KubeObject:
    """A graph with an adapter; its worker requests a tenth of a core and no GPU."""
    component = {**worker("Worker", replicas=replicas), "scalingAdapter": {}}
    (container,) = component["podTemplate"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "100m"}}
    desired = graph(namespace, components=[frontend(), component])
    if rules is not None:
        desired["metadata"]["annotations"] = {AUTOSCALING: json.dumps({"Worker": rules})}
    return desired


def hpa_of_a_user(namespace: str) -> KubeObject:
    """A user's HPA for the worker's adapter, without a label of the platform, as guides show it."""
    target = {**ADAPTERS.type_meta, "name": "disagg-worker"}
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 2}
    return {**HORIZONTAL_POD_AUTOSCALERS.type_meta, "metadata": {"name": "mine", "namespace": namespace}, "spec": spec}


async def until_pods(kube: KubeClient, namespace: str, count: int) -> None:
    """Wait until the worker has this many pods, and graph, Deployment and adapter status this number."""

    async def observed() -> list[int | None]:
        selector = f"{labels.COMPONENT}=Worker"
        pods = await kube.list(PODS, namespace, label_selector=selector)
        deployments = await kube.list(DEPLOYMENTS, namespace, label_selector=selector)
        if not deployments:
            return []
        stored = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "disagg"))
        adapter = await kube.get(ADAPTERS, ObjectKey(namespace, "disagg-worker"))
        return [
            sum("deletionTimestamp" not in pod["metadata"] for pod in pods),
            sum(each["spec"]["replicas"] for each in deployments),
            stored["spec"]["components"][1].get("replicas"),
            adapter.get("status", {}).get("replicas"),
        ]

    what = f"{count} pods (of: pods, Deployment, graph, status)"
    await eventually(observed, what, where=lambda numbers: numbers == [count] * 4)


async def autoscaling(kube: KubeClient, namespace: str) -> KubeObject:
    if await gone(kube, ADAPTERS, ObjectKey(namespace, "disagg-worker")):
        return {}
    adapter = await kube.get(ADAPTERS, ObjectKey(namespace, "disagg-worker"))
    return find(adapter.get("status", {}).get("conditions", ()), "Autoscaling") or {}


async def until_autoscaling(kube: KubeClient, namespace: str, reason: str) -> KubeObject:
    """The condition, once it has this reason."""
    return await eventually(
        lambda: autoscaling(kube, namespace), f"the reason {reason}", where=lambda entry: entry.get("reason") == reason
    )


async def test_kubectl_scales_an_adapter_and_shows_current_replicas(user, place, kubectl):
    await user.create(DYNAMO_GRAPH_DEPLOYMENTS, adapted(place))
    await until_state(user, ObjectKey(place, "disagg"), "successful")
    await kubectl("scale", "dgdsa/disagg-worker", "--replicas=3")
    await until_pods(user, place, 3)
    shown = (await kubectl("get", "dgdsa")).splitlines()
    assert shown[0].split() == ["NAME", "DGD", "COMPONENT", "REPLICAS", "AGE"]
    assert shown[1].split()[:4] == ["disagg-worker", "disagg", "Worker", "3"]
    # A user of the same account cannot bypass the adapter, but may write its number or omit it.
    key = ObjectKey(place, "disagg")
    operations = [{"op": "replace", "path": "/spec/components/1/replicas", "value": 5}]
    with pytest.raises(Invalid, match="kubectl scale dgdsa disagg-worker --replicas=5"):
        await user.json_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, operations)
    await user.json_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, [{"op": "remove", "path": "/spec/components/1/replicas"}])
    await until_pods(user, place, 3)


async def test_a_requested_hpa_follows_the_load_and_is_deleted_with_its_request(user, place, kubectl, load):
    load.millicores = 80
    await user.create(DYNAMO_GRAPH_DEPLOYMENTS, adapted(place, {"minReplicas": 1, "maxReplicas": 3}))
    key = ObjectKey(place, "disagg-worker")

    def measured(status: KubeObject) -> int | None:
        metrics = status.get("currentMetrics") or [{}]
        usage: int | None = metrics[0].get("resource", {}).get("current", {}).get("averageUtilization")
        return usage

    await until_status(user, HORIZONTAL_POD_AUTOSCALERS, key, "a metric that is served", measured)
    # If a metric was not served in time, it is unknown until the next sync.
    await eventually(lambda: kubectl("get", "hpa"), "80% is shown", where=lambda shown: "cpu: 80%/80%" in shown)
    await until_autoscaling(user, place, "HorizontalPodAutoscaler")
    await until_pods(user, place, 1)
    load.millicores = 400
    await until_pods(user, place, 3)
    await eventually(lambda: kubectl("get", "hpa"), "400% is shown", where=lambda shown: "cpu: 400%/80%" in shown)
    load.millicores = 8
    await until_pods(user, place, 1)
    # A change of its bounds is reverted; it is deleted when it is no longer desired.
    await user.merge_patch(HORIZONTAL_POD_AUTOSCALERS, key, {"spec": {"maxReplicas": 9}})
    asked = "the bounds that were asked for"
    await until_object(user, HORIZONTAL_POD_AUTOSCALERS, key, asked, lambda hpa: hpa["spec"]["maxReplicas"] == 3)
    without: KubeObject = {"metadata": {"annotations": {AUTOSCALING: None}}}
    await user.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(place, "disagg"), without)
    await eventually(lambda: gone(user, HORIZONTAL_POD_AUTOSCALERS, key), "no HPA")
    await eventually(lambda: autoscaling(user, place), "no condition", where=lambda answer: answer == {})


async def test_a_users_own_hpa_scales_an_adapter(user, place, load):
    load.millicores = 400
    await user.create(DYNAMO_GRAPH_DEPLOYMENTS, adapted(place))
    await user.create(HORIZONTAL_POD_AUTOSCALERS, hpa_of_a_user(place))
    await until_pods(user, place, 2)


async def test_a_client_like_keda_scales_from_zero_to_one_and_back(user, place):
    rules = {"minReplicas": 0, "maxReplicas": 5, "triggers": TRIGGERS, "cooldownPeriod": 60}
    await user.create(DYNAMO_GRAPH_DEPLOYMENTS, adapted(place, rules, replicas=0))
    key = ObjectKey(place, "disagg-worker")
    desired = (await until_object(user, SCALED_OBJECTS, key, "is made"))["spec"]
    assert (desired["minReplicaCount"], desired["maxReplicaCount"], desired["triggers"]) == (0, 5, TRIGGERS)
    await until_pods(user, place, 0)
    # Like KEDA's executor: read the scale of scaleTargetRef, write it back whole.
    keda = user.acting_as("keda-operator")
    assert desired["scaleTargetRef"] == {**ADAPTERS.type_meta, "name": key.name}
    path = ADAPTERS.path(place, key.name, "scale")

    async def written(replicas: int) -> bool:
        scale = json.loads(await user.raw_get(path))
        scale["spec"] = {"replicas": replicas}
        try:
            await keda.replace(ADAPTERS, scale, subresource="scale")
        except Conflict:
            # The scaler has written the adapter's status meanwhile; KEDA retries, too.
            return False
        return True

    for replicas in (1, 4, 0, 1):
        await eventually(partial(written, replicas), f"the scale of {replicas}")
        await until_pods(user, place, replicas)
