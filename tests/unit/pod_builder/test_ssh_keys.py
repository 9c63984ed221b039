"""The SSH key pairs of namespaces with graphs, and the one that an administrator provides for all."""

from typing import Any

import pytest
from dynamo_pod_builder.ssh_keys import SshKeys
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube.errors import Forbidden, NotFound

GRAPH: dict[str, Any] = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "graph", "namespace": "team", "uid": "u"},
}


class Secrets:
    """The Secrets in an API server."""

    def __init__(self, *there: KubeObject) -> None:
        self.by_namespace = {each["metadata"]["namespace"]: each for each in there}

    async def get(self, _: Resource, key: ObjectKey) -> KubeObject:
        try:
            return self.by_namespace[key.namespace]
        except KeyError:
            raise NotFound(404, "NotFound", "no secret") from None

    async def create(self, _: Resource, obj: KubeObject) -> KubeObject:
        self.by_namespace[obj["metadata"]["namespace"]] = obj
        return obj

    replace = create


PAIR: dict[str, str] = {"private.key": "cHJpdmF0ZQ==", "private.key.pub": "cHVibGlj"}


def graph_in(namespace: str) -> KubeObject:
    return {**GRAPH, "metadata": {**GRAPH["metadata"], "namespace": namespace, "uid": f"u-{namespace}"}}


def secret(content: dict[str, Any], **labels: str) -> KubeObject:
    return {"metadata": {"name": "keys", "namespace": "home", "resourceVersion": "7", "labels": labels}, **content}


@pytest.mark.parametrize(
    "there",
    [
        None,
        secret({"data": None}, by="admin"),
        # Of the platform, or of the reference operator, which copies its pair into all namespaces.
        secret({"data": PAIR}, **{"app.kubernetes.io/managed-by": "dynamo-operator"}),
    ],
)
async def test_the_key_pair_of_a_namespace_does_not_open_pods_of_another(there: KubeObject | None) -> None:
    secrets: Any = Secrets(*([] if there is None else [there]))
    keys = SshKeys(secrets, "keys", "home")
    for namespace in ("team", "other"):
        await keys.ensure(graph_in(namespace))
    team, other = (secrets.by_namespace[each] for each in ("team", "other"))
    assert set(team["data"]) == set(other["data"]) == set(PAIR)
    assert len({each["data"]["private.key"] for each in (team, other)} | {PAIR["private.key"]}) == 3
    assert [each["uid"] for each in team["metadata"]["ownerReferences"]] == ["u-team"]
    assert secrets.by_namespace.get("home") == there


async def test_all_graphs_of_a_namespace_own_its_key_pair() -> None:
    secrets: Any = Secrets()
    keys = SshKeys(secrets, "keys", "")
    others = {**GRAPH, "metadata": {**GRAPH["metadata"], "name": "second", "uid": "v"}}
    for graph in (GRAPH, others, GRAPH):
        await keys.ensure(graph)
    team = secrets.by_namespace["team"]
    assert [(each["name"], each["uid"]) for each in team["metadata"]["ownerReferences"]] == [
        ("graph", "u"),
        ("second", "v"),
    ]


async def test_each_namespace_gets_its_own_pair_without_a_pair_of_an_administrator() -> None:
    """A default installation has a Secret name, but no namespace with a pair for all."""
    secrets: Any = Secrets()
    keys = SshKeys(secrets, "keys", "")
    for namespace in ("team", "other"):
        await keys.ensure(graph_in(namespace))
    team, other = (secrets.by_namespace[each]["data"] for each in ("team", "other"))
    assert set(team) == set(other) == set(PAIR)
    assert team != other
    assert set(secrets.by_namespace) == {"team", "other"}


async def test_graphs_work_if_secrets_may_not_be_read() -> None:
    """`rbac.parts.sshSecrets=false`: an administrator creates the Secret by hand, as in earlier releases."""

    class NotReadable(Secrets):
        async def get(self, _: Resource, __: ObjectKey) -> KubeObject:
            raise Forbidden(403, "Forbidden", "cannot get resource secrets")

    secrets: Any = NotReadable()
    await SshKeys(secrets, "keys", "").ensure(GRAPH)
    assert secrets.by_namespace == {}


async def test_the_key_pair_of_an_administrator_is_copied() -> None:
    secrets: Any = Secrets(secret({"data": PAIR}, by="admin"))
    await SshKeys(secrets, "keys", "home").ensure(GRAPH)
    assert secrets.by_namespace["team"]["data"] == PAIR


async def test_an_existing_key_pair_stays() -> None:
    mine = {"metadata": {"name": "keys", "namespace": "team", "labels": {}}, "data": PAIR}
    secrets: Any = Secrets(mine)
    await SshKeys(secrets, "keys", "home").ensure(GRAPH)
    assert secrets.by_namespace == {"team": mine}


@pytest.mark.parametrize("content", [{}, {"data": None}, {"data": {}}, None])
async def test_a_secret_without_the_needed_keys_gets_them(content: dict[str, Any] | None) -> None:
    there = [] if content is None else [secret(content, by="admin")]
    secrets: Any = Secrets(*there)
    await SshKeys(secrets, "keys", "home").ensure(graph_in("home"))
    original = secrets.by_namespace["home"]
    assert set(original["data"]) == set(PAIR)
    if there:
        assert original["metadata"] == there[0]["metadata"]
