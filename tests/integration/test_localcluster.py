"""The local cluster with its real programs: pods become ready on GPU nodes, and data survives every kind of stop."""

import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from dynamo_devcluster import ControlPlane, ProcessDiedError, Programs
from dynamo_devcluster.probe import LocalHttp, client_tls
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_CHECKPOINTS, DYNAMO_MODELS, JOBS
from dynamo_shared.kube import KubeClient

from tests.building.control_plane import WITHOUT_CONTROLLERS, prepared
from tests.building.objects import object_of

from .etcd import stored
from .platform import eventually

FAULT = "localcluster.dynamo-platform/fault"


class Api:
    """Reads and writes objects as JSON."""

    def __init__(self, cluster: ControlPlane, namespace: str = "default") -> None:
        self.namespace = namespace
        config = json.loads(cluster.kubeconfig.read_text())
        assert config["clusters"][0]["cluster"]["server"] == cluster.url
        pair = cluster.certificates.client("admin")
        self.http = LocalHttp(int(cluster.url.rsplit(":", 1)[1]), client_tls(cluster.certificates.certificate, pair))

    async def get(self, path: str) -> dict[str, Any]:
        status, body = await self.http.request("GET", path)
        assert status == 200, body
        answer: dict[str, Any] = json.loads(body)
        return answer

    async def deploy(self, name: str, gpus: int = 1, **labels: str) -> None:
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        await self.create(path, deployment(name, gpus, **labels))

    async def create(self, path: str, document: dict[str, Any]) -> None:
        status, body = await self.http.request("POST", path, document)
        assert status == 201, body


def deployment(name: str, gpus: int = 1, **labels: str) -> dict[str, Any]:
    main = {"name": "main", "image": "worker:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    template = {"metadata": {"labels": {"app": name, **labels}}, "spec": {"containers": [main]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def ready(api: Api, name: str, expected: int = 1) -> Callable[[], Awaitable[bool]]:
    async def condition() -> bool:
        status = (await api.get(f"/apis/apps/v1/namespaces/{api.namespace}/deployments/{name}"))["status"]
        return bool(status.get("readyReplicas", 0) == expected)

    return condition


async def pods(api: Api, name: str) -> list[dict[str, Any]]:
    observed = await api.get(f"/api/v1/namespaces/{api.namespace}/pods?labelSelector=app%3D{name}")
    items: list[dict[str, Any]] = observed["items"]
    return items


async def test_a_deployment_with_a_gpu_becomes_ready(control_plane: ControlPlane, namespace: str) -> None:
    api = Api(control_plane, namespace)
    assert (await api.get("/version"))["gitVersion"].startswith("v1.35.")
    nodes = (await api.get("/api/v1/nodes"))["items"]
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8", "8"]
    assert not any(node["spec"].get("taints") for node in nodes)
    await api.deploy("one-gpu")
    await eventually(ready(api, "one-gpu"), "it is ready")
    pod = (await pods(api, "one-gpu"))[0]
    assert pod["spec"]["nodeName"].startswith("kwok-node-")
    assert pod["status"]["podIP"].startswith("10.128.")


async def test_faults_on_demand(control_plane: ControlPlane, namespace: str) -> None:
    api = Api(control_plane, namespace)
    await api.deploy("sleepy", gpus=0, **{FAULT: "never-ready"})
    await api.deploy("crashing", gpus=0, **{FAULT: "crash"})

    def state(name: str, expected: str) -> Callable[[], Awaitable[bool]]:
        async def condition() -> bool:
            statuses = [s for pod in await pods(api, name) for s in pod["status"].get("containerStatuses", [])]
            return any(expected in json.dumps(s["state"]) and not s["ready"] for s in statuses)

        return condition

    await eventually(state("sleepy", "running"), "it runs and is not ready")
    await eventually(state("crashing", "CrashLoopBackOff"), "it crashes")


async def test_kinds_with_objects_in_a_namespace_are_counted_in_etcd(
    control_plane: ControlPlane, kube: KubeClient, namespace: str
) -> None:
    """Otherwise `namespaces.empty` would delete nothing."""
    api = Api(control_plane, namespace)
    await api.deploy("idle", gpus=0)
    await kube.create(
        DYNAMO_MODELS, object_of(DYNAMO_MODELS, "m", namespace, spec={"modelName": "m", "baseModelName": "b"})
    )
    kinds = (DYNAMO_MODELS, DYNAMO_CHECKPOINTS, DEPLOYMENTS, JOBS)
    assert await stored(control_plane, namespace, kinds) == [DYNAMO_MODELS, DEPLOYMENTS]


@pytest.mark.restart
async def test_killed_api_server_keeps_data(control_plane: ControlPlane, namespace: str) -> None:
    api = Api(control_plane, namespace)
    name = "survivor"
    await api.deploy(name, gpus=0)
    await eventually(ready(api, name), "it is ready")
    uid = (await pods(api, name))[0]["metadata"]["uid"]
    await control_plane.api_server.kill()
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset
        await api.get("/readyz")
    await control_plane.api_server.start()
    assert [pod["metadata"]["uid"] for pod in await pods(api, name)] == [uid]
    # Scheduler, controllers and KWOK have reconnected, too.
    await api.deploy("afterwards")
    await eventually(ready(api, "afterwards"), "it is ready")


async def test_users_have_only_the_rights_that_they_are_given(control_plane: ControlPlane) -> None:
    path = control_plane.user_kubeconfig("alice", ("dev",))
    user = json.loads(path.read_text())["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]).startswith(b"-----BEGIN")
    pair = control_plane.certificates.client("user-alice")
    alice = LocalHttp(
        int(control_plane.url.rsplit(":", 1)[1]), client_tls(control_plane.certificates.certificate, pair)
    )
    status, body = await alice.request("GET", "/api/v1/namespaces/default/pods")
    assert status == 403
    assert b'User \\"alice\\"' in body


@pytest.mark.restart
async def test_second_start_on_the_same_directory(programs: Programs, tmp_path: Path) -> None:
    options = await prepared(programs, directory=tmp_path, **WITHOUT_CONTROLLERS)
    async with ControlPlane(options, programs) as first:
        url = first.url
        await Api(first).create(
            "/api/v1/namespaces/default/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}},
        )
    async with ControlPlane(options, programs) as second:
        assert second.url == url
        assert (await Api(second).get("/api/v1/namespaces/default/configmaps/kept"))["data"] == {"a": "b"}


async def test_temporary_directory_is_removed_if_a_part_does_not_start(programs: Programs) -> None:
    options = await prepared(programs, **WITHOUT_CONTROLLERS, api_server_arguments=("--no-such-flag",))
    control_plane = ControlPlane(options, programs)
    with pytest.raises(ProcessDiedError, match="no-such-flag"):
        await control_plane.start()
    assert not control_plane.directory.exists()
