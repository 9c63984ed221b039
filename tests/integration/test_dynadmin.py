"""The REST API on a real API server and NATS: rights, conventions, streams."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_MODELS,
    ROLE_BINDINGS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient

from tests.building.objects import object_of

from .dynadmin import EVERYTHING, Answer, Api, account, cluster_wide, dynadmin, guest, token_of
from .platform import eventually

PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}
EVENTS = {"verbs": ["list"], "apiGroups": ["events.k8s.io"], "resources": ["events"]}
INTENT = {
    "mode": "graph",
    "name": "qwen",
    "model": {"name": "Qwen/Qwen3-0.6B"},
    "backend": "vllm",
    "serving": {"replicas": {"worker": 2}},
}


def graph(name: str, **spec: Any) -> dict[str, Any]:
    components = [{"name": "Frontend", "type": "frontend", "replicas": 1}]
    spec = {"backendFramework": "vllm", "components": components, **spec}
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS, name, "", spec=spec)


@pytest.fixture
async def api(rest_api: Api, kube: KubeClient, namespace: str) -> Api:
    return replace(rest_api, token=await account(kube, namespace, "owner", EVERYTHING, PODS, EVENTS))


def names(answer: Answer) -> set[str]:
    return {each["metadata"]["name"] for each in answer.json["items"]}


async def listing(api: Api, path: str, *expected: str) -> Any:
    """The list once it has these objects, or any list if none is given: it is answered from STATE."""

    def right(answer: Answer) -> bool:
        return names(answer) == set(expected) if expected else bool(names(answer))

    return await eventually(lambda: api("GET", path), "the list", where=right)


async def test_an_object_is_created_read_changed_and_deleted(api: Api, kube: KubeClient, namespace: str) -> None:
    many, one = f"/api/v1/namespaces/{namespace}/deployments", f"/api/v1/namespaces/{namespace}/deployments/a"
    created = await api("POST", many, graph("a"))
    assert (created.status, created.headers["Location"]) == (201, one)
    stored = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "a"))
    managers = {each["manager"] for each in stored["metadata"]["managedFields"]}
    assert managers == {f"dynadmin/system:serviceaccount:{namespace}:owner"}
    assert (await api("POST", many, graph("a"))).json["type"] == "urn:dynamo:problem:already-exists"

    read = await api("GET", one)
    etag = read.headers["ETag"]
    assert etag == created.headers["ETag"]
    assert "managedFields" not in read.json["metadata"]
    assert (await api("GET", one, If_None_Match=etag)).status == 304
    assert (await api("GET", f"{one}/manifest?format=yaml")).content.startswith(b"apiVersion:")
    assert (await api("GET", f"{one}/status")).json["upToDate"] is True
    listed = await listing(api, many)
    assert listed.json["items"][0] == read.json

    changed = graph("a", components=[{"name": "Frontend", "type": "frontend", "replicas": 2}])
    assert (await api("PUT", one, changed)).status == 428
    assert (await api("PUT", one, changed, If_Match='"1"')).status == 412
    replaced = await api("PUT", one, changed, If_Match=etag)
    assert (replaced.status, replaced.json["spec"]["components"][0]["replicas"]) == (200, 2)
    assert (await api("PUT", one, changed, If_Match=etag)).json["type"] == "urn:dynamo:problem:stale"
    merge = {"Content_Type": "application/merge-patch+json"}
    patched = await api("PATCH", one, {"metadata": {"labels": {"x": "y"}}}, If_Match=replaced.headers["ETag"], **merge)
    assert patched.json["metadata"]["labels"] == {"x": "y"}
    operations = [{"op": "add", "path": "/metadata/labels/z", "value": "1"}]
    jsonpatch = {"Content_Type": "application/json-patch+json"}
    again = await api("PATCH", one, operations, If_Match=patched.headers["ETag"], **jsonpatch)
    assert again.json["metadata"]["labels"] == {"x": "y", "z": "1"}
    assert (await api("PATCH", one, operations, If_Match=patched.headers["ETag"], **jsonpatch)).status == 412

    assert (await api("DELETE", one)).status == 428
    assert (await api("DELETE", one, If_Match=etag)).status == 412
    assert (await api("DELETE", one, If_Match=again.headers["ETag"])).status == 204
    assert (await api("GET", one)).json["type"] == "urn:dynamo:problem:not-found"


MODEL = {"modelName": "Qwen/Qwen3-0.6B", "baseModelName": "qwen", "modelType": "base"}
CHECKPOINT = {
    "identity": {"model": "meta-llama/Llama-3.1-8B-Instruct", "backendFramework": "vllm"},
    "job": {"podTemplateSpec": {"spec": {"containers": [{"name": "main", "image": "vllm:1"}]}}},
}


@pytest.mark.parametrize(
    ("resource", "spec"), [(DYNAMO_MODELS, MODEL), (DYNAMO_CHECKPOINTS, CHECKPOINT)], ids=["model", "checkpoint"]
)
async def test_a_body_may_have_any_served_version(
    api: Api, kube: KubeClient, namespace: str, resource: Resource, spec: dict[str, Any]
) -> None:
    many = f"/api/v1/namespaces/{namespace}/{resource.plural.removeprefix('dynamo')}"
    one, newer = f"{many}/a", resource.at("v1beta1").api_version
    body = {"apiVersion": newer, "kind": resource.kind, "metadata": {"name": "a"}, "spec": spec}
    created = await api("POST", many, body, Idempotency_Key="k")
    assert (created.status, created.json["apiVersion"]) == (201, newer)
    again = await api("POST", many, body, Idempotency_Key="k")
    assert (again.status, again.json["apiVersion"]) == (200, newer)
    # It is written in the version of the body, which the API server records.
    stored = await kube.get(resource, ObjectKey(namespace, "a"))
    assert {each["apiVersion"] for each in stored["metadata"]["managedFields"]} == {newer}
    # Reads return the version of the platform's object stream.
    read = await api("GET", one)
    assert read.json["apiVersion"] == resource.api_version
    listed = await listing(api, many)
    assert [each["apiVersion"] for each in listed.json["items"]] == [resource.api_version]
    labelled = {**body, "metadata": {"name": "a", "labels": {"x": "y"}}}
    replaced = await api("PUT", one, labelled, If_Match=read.headers["ETag"])
    assert (replaced.status, replaced.json["apiVersion"]) == (200, newer)
    merge = {"Content_Type": "application/merge-patch+json"}
    patch = {"apiVersion": newer, "metadata": {"labels": {"z": "1"}}}
    patched = await api("PATCH", one, patch, If_Match=replaced.headers["ETag"], **merge)
    assert (patched.status, patched.json["apiVersion"]) == (200, newer)
    assert patched.json["metadata"]["labels"] == {"x": "y", "z": "1"}
    other = await api("POST", many, {**body, "apiVersion": "nvidia.com/v2"})
    assert (other.status, [each["pointer"] for each in other.json["errors"]]) == (422, ["/apiVersion"])
    assert newer in other.json["errors"][0]["detail"]


async def test_a_repeated_request_creates_one_object(api: Api, namespace: str) -> None:
    many = f"/api/v1/namespaces/{namespace}/deployments"
    first = await api("POST", many, graph("a"), Idempotency_Key="k1")
    again = await api("POST", many, graph("a"), Idempotency_Key="k1")
    assert (first.status, again.status, again.headers["Idempotency-Replayed"]) == (201, 200, "true")
    other = await api("POST", many, graph("a", restart={"id": "x"}), Idempotency_Key="k1")
    assert other.json["type"] == "urn:dynamo:problem:key-reused"
    assert (await api("POST", many, graph("a"), Idempotency_Key="k2")).status == 409
    unnamed = graph("")
    unnamed["metadata"] = {"generateName": "b-"}
    first = await api("POST", many, unnamed, Idempotency_Key="k3")
    again = await api("POST", many, unnamed, Idempotency_Key="k3")
    assert (first.status, again.status) == (201, 200)
    assert first.json["metadata"]["name"] == again.json["metadata"]["name"]
    assert first.json["metadata"]["name"].startswith("b-")


async def test_an_intent_is_translated_validated_and_deployed(api: Api, kube: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/deploy"
    client = await api("POST", f"{path}?dryRun=client", {**INTENT, "objective": {"ttftMs": 10}})
    assert client.status == 200
    assert [each["pointer"] for each in client.json["unexpressed"]] == ["/objective/ttftMs"]
    kinds = {each["kind"] for each in client.json["tree"]["children"]}
    assert "DynamoComponentDeployment" in kinds
    server = await api("POST", f"{path}?dryRun=server", INTENT)
    assert (server.status, server.json["object"]["spec"]) == (200, server.json["manifest"]["spec"])
    assert server.json["gpus"] is None, "the caller may not list nodes"
    assert not await kube.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace)
    await cluster_wide(kube, namespace, "owner", {"verbs": ["list"], "apiGroups": [""], "resources": ["nodes", "pods"]})

    async def observed() -> Any:
        return await api("POST", f"{path}?dryRun=server", {**INTENT, "hardware": {"gpusPerReplica": 9}})

    result = await eventually(observed, "GPUs are known", where=lambda answer: answer.json["gpus"] is not None)
    assert result.json["gpus"]["fits"] is False
    assert result.json["gpus"]["missing"][0]["gpus"] == 18
    created = await api("POST", path, INTENT, Idempotency_Key="one")
    assert (created.status, created.json["gpus"]["fits"]) == (201, True)
    assert (await api("POST", path, INTENT, Idempotency_Key="one")).status == 200
    objective = {"mode": "objective", "name": "qwen", "model": {"name": "Qwen/Qwen3-32B"}}
    assert (await api("POST", path, objective)).json["object"]["kind"] == "DynamoGraphDeploymentRequest"
    # Errors of the object are reported at the form's field: first by dynadmin, then by the API server.
    wrong = await api("POST", f"{path}?dryRun=server", {**INTENT, "name": "b", "hardware": {"cpu": "many"}})
    assert (wrong.status, [each["pointer"] for each in wrong.json["errors"]]) == (422, ["/hardware/cpu"])
    refused = await api("POST", f"{path}?dryRun=server", {**INTENT, "name": "b", "labels": {"team": "x" * 64}})
    assert (refused.status, [each["pointer"] for each in refused.json["errors"]]) == (422, ["/labels"])


async def test_users_see_and_do_what_their_rights_allow(api: Api, kube: KubeClient, namespace: str) -> None:
    many = f"/api/v1/namespaces/{namespace}/deployments"
    reader = await account(
        kube,
        namespace,
        "reader",
        {"verbs": ["get", "list", "watch"], "apiGroups": ["nvidia.com"], "resources": ["dynamographdeployments"]},
    )
    stranger = await account(kube, namespace, "stranger")
    await api("POST", many, graph("a"))
    await listing(api, many)
    assert (await api("GET", many, token=reader)).status == 200
    assert (await api("POST", many, graph("b"), token=reader)).json["type"] == "urn:dynamo:problem:forbidden"
    assert (await api("GET", f"/api/v1/namespaces/{namespace}/requests", token=reader)).status == 403
    for method, path in (
        ("GET", many),
        ("GET", f"{many}?watch=true"),
        ("GET", f"{many}/a"),
        ("GET", f"{many}/a/tree"),
        ("GET", f"{many}/a/pods"),
        ("GET", f"{many}/a/logs"),
        ("GET", f"{many}/a/events"),
        ("GET", f"{many}/a/status"),
    ):
        assert (await api(method, path, token=stranger)).status == 403, path
    assert (await api("GET", "/api/v1/namespaces", token=stranger)).json["items"] == []
    assert {"name": namespace} in (await api("GET", "/api/v1/namespaces", token=reader)).json["items"]
    rights = (await api("GET", f"/api/v1/namespaces/{namespace}/me/access", token=reader)).json
    assert rights["collections"]["deployments"]["list"] is True
    assert rights["collections"]["deployments"]["create"] is False
    assert (await api("GET", "/api/v1/me", token=reader)).json["user"].endswith(":reader")
    assert (await api("GET", "/api/v1/namespaces/kube-system/deployments")).status == 403


async def test_callers_are_authenticated_only_by_their_token(api: Api, namespace: str) -> None:
    many = f"/api/v1/namespaces/{namespace}/deployments"
    assert (await api("GET", many, token="")).status == 401
    assert (await api("GET", many, token="rubbish")).status == 401
    assert (await api("GET", many, Authorization="Basic YTpi", token="")).status == 401
    for header in ("Impersonate-User", "Impersonate-Group", "impersonate-uid", "Impersonate-Extra-x"):
        answer = await api("GET", many, **{header.replace("-", "_"): "system:masters"})
        assert answer.status == 400, header
    for path in (
        "/api/v1/namespaces/../deployments",
        "/api/v1/namespaces/%2e%2e/deployments",
        f"/api/v1/namespaces/{namespace}/deployments/..%2f..%2fsecrets",
        f"/api/v1/namespaces/{namespace}%2fx/deployments",
        f"/api/v1/namespaces/{namespace}/deployments/a%00b",
        f"/api/v1/namespaces/{namespace}/secrets",
    ):
        assert (await api("GET", path)).status in (404, 405), path


async def test_a_session_is_a_sealed_cookie_and_needs_its_csrf_token(api: Api, namespace: str) -> None:
    many = f"/api/v1/namespaces/{namespace}/deployments"
    begun = await api("POST", "/api/v1/session", {"token": api.token}, token="")
    assert begun.status == 201
    assert api.token not in begun.headers["Set-Cookie"]
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= set(begun.headers["Set-Cookie"].split("; "))
    cookie = begun.headers["Set-Cookie"].partition(";")[0]
    csrf = begun.json["csrfToken"]
    assert (await api("GET", many, token="", Cookie=cookie)).status == 200
    assert (await api("GET", "/api/v1/session", token="", Cookie=cookie)).json["csrfToken"] == csrf
    assert (await api("POST", many, graph("a"), token="", Cookie=cookie)).json["type"] == "urn:dynamo:problem:csrf"
    forged = cookie[:-6] + ("AAAAAA" if not cookie.endswith("AAAAAA") else "BBBBBB")
    assert (await api("GET", many, token="", Cookie=forged)).status == 401
    assert (await api("POST", many, graph("a"), token="", Cookie=cookie, X_CSRF_Token=csrf)).status == 201
    assert (await api("POST", "/api/v1/session", {"token": "rubbish"}, token="")).status == 401


async def test_a_stream_starts_with_existing_objects_and_resumes_where_it_broke_off(api: Api, namespace: str) -> None:
    many = f"/api/v1/namespaces/{namespace}/deployments"
    await api("POST", many, graph("a"))
    await listing(api, many)
    async with api.stream(f"{many}?watch=true") as events:
        first = await events.until("synced")
        assert [(event, data["metadata"]["name"]) for event, data, _ in first[:-1]] == [("ADDED", "a")]
        await api("POST", many, graph("b"))
        event, data, position = await events.next()
        assert (event, data["metadata"]["name"]) == ("ADDED", "b")
    etag = (await api("GET", f"{many}/b")).headers["ETag"]
    await api("DELETE", f"{many}/b", If_Match=etag)
    await api("POST", many, graph("c"))
    await listing(api, many, "a", "c")
    async with api.stream(f"{many}?watch=true", Last_Event_ID=position) as events:
        missed = await events.until("synced")
        assert [(event, data.get("metadata", data).get("name")) for event, data, _ in missed[:-1]] == [
            ("DELETED", "b"),
            ("ADDED", "c"),
        ]
    for unknown in ("12-elsewhere", "rubbish", f"999999-{position.partition('-')[2]}"):
        async with api.stream(f"{many}?watch=true", Last_Event_ID=unknown) as events:
            assert (await events.next())[0] == "resync", unknown


async def test_a_stream_ends_when_its_caller_loses_the_rights(api: Api, kube: KubeClient, namespace: str) -> None:
    many = f"/api/v1/namespaces/{namespace}/deployments"
    rule = {"verbs": ["list", "watch"], "apiGroups": ["nvidia.com"], "resources": ["dynamographdeployments"]}
    token = await account(kube, namespace, "guest", rule)
    async with api.stream(f"{many}?watch=true", token=token) as events:
        await events.until("synced")
        await kube.delete(ROLE_BINDINGS, ObjectKey(namespace, "guest"))
        async with asyncio.timeout(60):
            assert (await events.next())[0] == "unauthorized"
            assert (await events.next())[0] == "closed"


async def test_the_number_of_streams_is_limited_per_caller(
    control_plane: ControlPlane, nats_server: NatsServer, kube: KubeClient, namespace: str
) -> None:
    extra = {"MAX_STREAMS": "3", "MAX_STREAMS_PER_USER": "2", "BURST": "12", "REQUESTS_PER_SECOND": "0.1"}
    async with dynadmin(control_plane.kubeconfig, nats_server.url, **extra) as api:
        one = await account(kube, namespace, "one", EVERYTHING)
        same = await account(kube, namespace, "two", EVERYTHING)
        # Service accounts of a namespace share a limit.
        two = await guest(kube, namespace, "guest")
        path = f"/api/v1/namespaces/{namespace}/deployments?watch=true"
        async with api.stream(path, token=one) as a, api.stream(path, token=one) as b, api.stream(path, token=two) as c:
            assert [a.status, b.status, c.status] == [200, 200, 200]
            refused = await api("GET", path, token=one)
            assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
        # A request on another connection may arrive before the end of these.
        await eventually(lambda: opened(api, path, two), "a stream is free", where=lambda status: status == 200)
        async with api.stream(path, token=one) as a, api.stream(path, token=same) as b:
            assert [a.status, b.status] == [200, 200]
            assert (await api("GET", path, token=same)).status == 429
        await eventually(lambda: opened(api, path, two), "a stream is free", where=lambda status: status == 200)
        statuses = [(await api("GET", "/api/v1/me", token=one)).status for _ in range(12)]
        assert statuses[-1] == 429


async def opened(api: Api, path: str, token: str) -> int:
    async with api.stream(path, token=token) as events:
        return events.status


async def test_replicas_are_scaled_at_their_owner(api: Api, kube: KubeClient, namespace: str) -> None:
    many = f"/api/v1/namespaces/{namespace}/deployments"
    await api("POST", many, graph("a"))
    scaled = await api("POST", f"{many}/a/scale", {"component": "Frontend", "replicas": 3})
    assert (scaled.status, scaled.json["via"]) == (200, "graph")
    stored = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "a"))
    assert stored["spec"]["components"][0]["replicas"] == 3
    assert [each["pointer"] for each in (await api("POST", f"{many}/a/scale", {"replicas": 1})).json["errors"]] == [
        "/component"
    ]
    planned = graph("b")
    planned["metadata"]["annotations"] = {"nvidia.com/planner-config": "c"}
    await api("POST", many, planned)
    answer = await api("POST", f"{many}/b/scale", {"component": "Frontend", "replicas": 3})
    assert (answer.status, answer.json["owner"]) == (409, "planner")
    restarted = await api("POST", f"{many}/a/restart", {})
    assert restarted.json["restart"]["id"]


async def test_changes_of_objects_of_argo_cd_are_answered_with_the_patch_to_commit(api: Api, namespace: str) -> None:
    many = f"/api/v1/namespaces/{namespace}/deployments"
    managed = graph("a")
    managed["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "shop:nvidia.com/DynamoGraphDeployment:x/a"}
    etag = (await api("POST", many, managed)).headers["ETag"]
    merge = {"Content_Type": "application/merge-patch+json", "If_Match": etag}
    answer = await api("PATCH", f"{many}/a", {"spec": {"labels": {"x": "y"}}}, **merge)
    assert (answer.status, answer.json["managedBy"]) == (409, "Argo CD application shop")
    assert answer.json["patch"] == {"spec": {"labels": {"x": "y"}}}
    assert (await api("DELETE", f"{many}/a", If_Match=etag)).status == 409
    # A restart does not conflict with the repository.
    assert (await api("POST", f"{many}/a/restart", {"id": "r"})).json["restart"]["id"] == "r"


async def test_a_point_of_a_request_is_deployed(api: Api, kube: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/requests"
    await api("POST", path, {"metadata": {"name": "r"}, "spec": {"model": "m", "autoApply": False}})
    assert (await api("POST", f"{path}/r/promote", {"point": 1})).json["type"] == "urn:dynamo:problem:conflict"
    first, second = graph("r-dgd"), graph("r-dgd", restart={"id": "other"})
    for each in (first, second):
        each["metadata"]["namespace"] = namespace
    results = {"pareto": [{"config": first}, {"config": second}], "selectedConfig": first, "source": "aiconfigurator"}
    await kube.merge_patch(
        DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
        ObjectKey(namespace, "r"),
        {"status": {"phase": "Ready", "profilingResults": results}},
        subresource="status",
    )
    result = (await api("GET", f"{path}/r/candidates")).json
    assert [(each["point"], each["selected"]) for each in result["items"]] == [(1, True), (2, False)]
    assert (await api("POST", f"{path}/r/promote", {"point": 3})).status == 422
    assert (await api("POST", f"{path}/r/promote", {"point": 1})).status == 201
    changed = await api("POST", f"{path}/r/promote", {"point": 2})
    assert (changed.status, changed.json["spec"]["restart"]) == (200, {"id": "other"})
    keyed = await api("POST", f"{path}/r/promote", {"point": 1}, Idempotency_Key="k")
    assert (keyed.status, keyed.json["spec"].get("restart")) == (200, None)
    again = await api("POST", f"{path}/r/promote", {"point": 1}, Idempotency_Key="k")
    assert (again.status, again.headers["Idempotency-Replayed"]) == (200, "true")
    reused = await api("POST", f"{path}/r/promote", {"point": 2}, Idempotency_Key="k")
    assert reused.json["type"] == "urn:dynamo:problem:key-reused"
    await kube.merge_patch(
        DYNAMO_GRAPH_DEPLOYMENTS,
        ObjectKey(namespace, "r-dgd"),
        {"metadata": {"labels": {"argocd.argoproj.io/instance": "shop"}}},
    )
    managed = await api("POST", f"{path}/r/promote", {"point": 2})
    assert (managed.status, managed.json["patch"]["spec"]) == (409, {"restart": {"id": "other"}})


async def test_the_end_of_a_token_is_reported(api: Api, kube: KubeClient, namespace: str) -> None:
    token = await token_of(kube, namespace, "owner", 600)
    me = (await api("GET", "/api/v1/me", token=token)).json
    assert me["expires"] == pytest.approx(time.time() + 600, abs=120)


async def test_limits_of_bodies_and_types(api: Api, namespace: str) -> None:
    many = f"/api/v1/namespaces/{namespace}/deployments"
    assert (await api("POST", many, b"{", Content_Type="application/json")).status == 400
    assert (await api("POST", many, b"x", Content_Type="text/plain")).status == 415
    assert (await api("POST", many, b" " * (4 << 20))).status == 413
    assert (await api("POST", many, b"[" * 100_000)).status == 400
    assert (await api("GET", f"{many}?limit=x&foo=1")).json["errors"][0]["pointer"] == "?limit"
    assert (await api("PUT", many, {})).status == 405
    assert (await api("GET", "/api/v1/nothing")).status == 404
    assert (await api("GET", "/api/v1/openapi.json", token="")).json["openapi"] == "3.1.0"
    yaml = b"apiVersion: nvidia.com/v1alpha1\nkind: DynamoModel\nmetadata: {name: m}\nspec: {modelName: m, baseModelName: b}\n"
    path = f"/api/v1/namespaces/{namespace}/models"
    assert (await api("POST", path, yaml, Content_Type="application/yaml")).status == 201
