"""The platform in the test's own process, and functions that wait for its results."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from inspect import isawaitable
from pathlib import Path
from typing import Any

import nats
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    EVENTS,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError, NotFound
from dynamo_shared.runtime import Service, Settings, load_settings, running
from dynamo_watcher.app import WatcherService
from nats.aio.msg import Msg

from tests.building.objects import object_of

CHILDREN: tuple[Resource, ...] = (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DEPLOYMENTS,
    SERVICES,
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
)
IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0"
#: Generous, because the machine may be busy. Results usually arrive within a second.
WITHIN = 60.0


def settings(kubeconfig: Path, nats_url: str, etcd_url: str = "", **extra: str) -> Settings:
    """Settings of a platform on local servers; `extra` are DYNAMO_ variables without their prefix."""
    environ = {
        "DYNAMO_PLATFORM__KUBERNETES__KUBECONFIG": str(kubeconfig),
        "DYNAMO_PLATFORM__NATS__SERVERS": nats_url,
        "DYNAMO_PLATFORM__ETCD__ENDPOINTS": etcd_url,
        # A new etcd is trusted only after leases of an earlier one would have expired.
        "DYNAMO_PLATFORM__ETCD__LEASE_TTL": "3s",
        "DYNAMO_RBAC__PLANNER_CLUSTER_ROLE_NAME": "dynamo-planner",
        "DYNAMO_SERVER__METRICS__BIND_ADDRESS": "127.0.0.1",
        "DYNAMO_SERVER__METRICS__PORT": "0",
        "DYNAMO_SERVER__METRICS__SECURE": "false",
        "DYNAMO_SERVER__HEALTH_PROBE__BIND_ADDRESS": "127.0.0.1",
        "DYNAMO_SERVER__HEALTH_PROBE__PORT": "0",
        **{f"DYNAMO_{name}": value for name, value in extra.items()},
    }
    return load_settings(None, {name: value for name, value in environ.items() if value})


def services() -> list[Service]:
    """All services, new."""
    return [WatcherService(), PodBuilderService()]


@asynccontextmanager
async def platform(configured: Settings, parts: Sequence[Service] | None = None) -> AsyncIterator[Any]:
    """Services that are ready and run during the block."""
    async with running(parts if parts is not None else services(), configured) as up:
        await up.ready()
        yield up


def graph(namespace: str, name: str = "disagg", **spec: Any) -> KubeObject:
    """A DynamoGraphDeployment of a frontend, a prefill and a decode worker."""
    components = [frontend(), worker("Prefill", "prefill"), worker("Decode", "decode")]
    spec = {"backendFramework": "vllm", "components": components, **spec}
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS, name, namespace, spec=spec)


def frontend() -> KubeObject:
    """A frontend component."""
    pod_template = {"spec": {"containers": [{"name": "main", "image": IMAGE}]}}
    return {"name": "Frontend", "type": "frontend", "replicas": 1, "podTemplate": pod_template}


def worker(name: str, type_: str = "worker", *, replicas: int = 1, image: str = IMAGE, **template: Any) -> KubeObject:
    """A worker component with one GPU."""
    command = ["python3", "-m", "dynamo.vllm"]
    args = ["--model", "Qwen/Qwen3-0.6B"]
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": image, "command": command, "args": args, "resources": resources}
    pod_template = {**template, "spec": {"containers": [container]}}
    return {"name": name, "type": type_, "replicas": replicas, "podTemplate": pod_template}


async def eventually(
    check: Callable[[], Any], what: str, within: float = WITHIN, *, where: Callable[[Any], object] = bool
) -> Any:
    """The first answer of `check` (awaited if needed) that is true, or for which `where` is true.

    Fails with the last answer if none is in time.

    An unavailable API server counts as no answer, because tests restart it.
    """
    last: Any = None
    begun = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(within):
            while True:
                try:
                    answer = check()
                    last = await answer if isawaitable(answer) else answer
                except KubeError as error:
                    if not error.retriable:
                        raise
                    last = error
                else:
                    if where(last):
                        return last
                # Each check costs the API server as much as a request of the platform.
                is_soon = asyncio.get_running_loop().time() < begun + 1
                await asyncio.sleep(0.1 if is_soon else 0.2)
    except TimeoutError:
        raise AssertionError(f"not within {within:g} s: {what}; last: {last!r}") from None


async def until_object(
    kube: KubeClient,
    resource: Resource,
    key: ObjectKey,
    what: str,
    where: Callable[[KubeObject], object] = bool,
    *,
    within: float = WITHIN,
) -> KubeObject:
    """An object, once it exists and `where` is true; a failure shows its last status."""
    observed: KubeObject = {}

    async def status() -> Any:
        nonlocal observed
        observed = {}
        with suppress(NotFound):
            observed = await kube.get(resource, key)
        return observed.get("status")

    await eventually(status, f"{resource.kind} {key}: {what}", within, where=lambda _: observed and where(observed))
    return observed


async def until_status(
    kube: KubeClient,
    resource: Resource,
    key: ObjectKey,
    what: str,
    where: Callable[[KubeObject], object],
    *,
    within: float = WITHIN,
) -> KubeObject:
    """The status of an object, once `where` is true."""
    observed = await until_object(kube, resource, key, what, lambda obj: where(obj.get("status") or {}), within=within)
    status: KubeObject = observed["status"]
    return status


async def until_state(kube: KubeClient, key: ObjectKey, state: str, within: float = WITHIN) -> KubeObject:
    """The graph, once its current generation is in this state."""

    def right(observed: KubeObject) -> bool:
        status = observed.get("status", {})
        current = status.get("observedGeneration") == observed["metadata"]["generation"]
        return current and status.get("state") == state

    return await until_object(kube, DYNAMO_GRAPH_DEPLOYMENTS, key, state, right, within=within)


async def until_event(kube: KubeClient, namespace: str, reason: str, about: str = "") -> KubeObject:
    """The first Kubernetes Event with a reason; `about` is the kind or the name of its object."""

    async def check() -> KubeObject | None:
        events = [each for each in await kube.list(EVENTS, namespace) if each["reason"] == reason]
        return next((each for each in events if about in ("", *map(each["regarding"].get, ("kind", "name")))), None)

    event: KubeObject = await eventually(check, f"Event {reason} {about}")
    return event


async def pod_uids(kube: KubeClient, namespace: str) -> set[str]:
    """Pods that are not being deleted."""
    items = await kube.list(PODS, namespace)
    return {each["metadata"]["uid"] for each in items if "deletionTimestamp" not in each["metadata"]}


async def hold_pods(kube: KubeClient, held: bool) -> None:
    """Whether new pods stay unscheduled."""
    for node in await kube.list(NODES):
        await kube.merge_patch(NODES, ObjectKey("", node["metadata"]["name"]), {"spec": {"unschedulable": held}})


@asynccontextmanager
async def hearing(nats_url: str, namespace: str, about: str = ">") -> AsyncIterator[list[tuple[str, KubeObject]]]:
    """Subjects and events of a namespace in the order of arrival, received by an independent client."""
    connection = await nats.connect(nats_url)
    heard: list[tuple[str, KubeObject]] = []

    async def take(message: Msg) -> None:
        heard.append((message.subject, json.loads(message.data)))

    try:
        await connection.subscribe(f"dynamo.evt.v1.*.{namespace}.{about}", cb=take)
        await connection.flush()
        yield heard
    finally:
        await connection.close()


async def children_of(kube: KubeClient, namespace: str) -> dict[str, KubeObject]:
    """All objects that the platform creates in a namespace, by `kind/name`, without Kubernetes' own."""
    results: dict[str, KubeObject] = {}
    for resource in CHILDREN:
        for item in await kube.list(resource, namespace):
            if item["metadata"]["name"] not in {"default", "kubernetes"}:
                results[f"{resource.kind}/{item['metadata']['name']}"] = item
    return results


async def gone(kube: KubeClient, resource: Resource, key: ObjectKey) -> bool:
    """Whether an object does not exist."""
    try:
        await kube.get(resource, key)
    except NotFound:
        return True
    return False
