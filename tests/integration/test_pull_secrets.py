"""Pull secrets of a namespace and its service accounts are selected for pods, on a real API server."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_pod_builder import surroundings
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, SECRETS, ObjectKey
from dynamo_shared.kube import KubeClient

from .platform import eventually, frontend, graph, platform, settings, until_event, until_state


@pytest.fixture
async def running_platform(control_plane, nats_server, monkeypatch) -> AsyncIterator[Any]:
    """The platform, which reads Secrets so often that tests need not wait."""
    monkeypatch.setattr(surroundings, "REFRESH", 0.2)
    monkeypatch.setattr(surroundings, "CHECK_INTERVAL", 0.1)
    configured = settings(control_plane.kubeconfig, nats_server.url, DISCOVERY__BACKEND="etcd")
    async with platform(configured) as up:
        yield up


def secret(namespace: str, name: str, content: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    data = {".dockerconfigjson": base64.b64encode(json.dumps(content).encode()).decode()}
    return {**SECRETS.type_meta, "metadata": metadata, "type": "kubernetes.io/dockerconfigjson", "data": data}


def of(*hosts: str) -> dict[str, Any]:
    return {"auths": {host: {"auth": "dTpw"} for host in hosts}}


async def pod_spec(kube: KubeClient, namespace: str) -> dict[str, Any]:
    (deployment,) = await kube.list(DEPLOYMENTS, namespace)
    results: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return results


async def until_secrets(kube: KubeClient, namespace: str, *names: str) -> None:
    async def check() -> bool:
        spec = await pod_spec(kube, namespace)
        return [each["name"] for each in spec.get("imagePullSecrets", ())] == list(names)

    await eventually(check, f"pull secrets {names}")


@pytest.mark.usefixtures("running_platform")
async def test_secrets_are_listed_and_watched_and_a_malformed_one_is_reported(kube, namespace) -> None:
    await kube.create(SECRETS, secret(namespace, "ngc", of("https://nvcr.io/v2/")))
    await kube.create(SECRETS, secret(namespace, "hub", of("https://index.docker.io/v1/")))
    broken = {"auths": "not an object"}
    await kube.create(SECRETS, secret(namespace, "broken", broken))
    front = frontend()
    front["podTemplate"]["spec"]["containers"].append({"name": "log", "image": "fluentd:1"})
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[front]))
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    await until_secrets(kube, namespace, "hub", "ngc")

    event = await until_event(kube, namespace, "MalformedPullSecret")
    assert (event["regarding"]["kind"], event["regarding"]["name"]) == ("Secret", "broken")

    # From here on, only Secrets change.
    await kube.create(SECRETS, secret(namespace, "also", of("nvcr.io")))
    await until_secrets(kube, namespace, "also", "hub", "ngc")
    await kube.delete(SECRETS, ObjectKey(namespace, "ngc"))
    await until_secrets(kube, namespace, "also", "hub")
