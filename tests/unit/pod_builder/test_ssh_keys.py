"""The key pair of an installation, and its copies in the namespaces of graphs."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_pod_builder.ssh_keys import SshKeys
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube.errors import NotFound

GRAPH = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "graph", "namespace": "team", "uid": "u"},
}


class Secrets:
    """The Secrets of an API server."""

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


@pytest.mark.parametrize("content", [{}, {"data": None}, {"data": {}}, None])
async def test_an_original_without_content_gets_a_pair_and_its_copy_the_same(content: KubeObject | None) -> None:
    metadata = {"name": "keys", "namespace": "home", "resourceVersion": "7", "labels": {"by": "admin"}}
    secrets: Any = Secrets(*([] if content is None else [{"metadata": metadata, **content}]))
    await SshKeys(secrets, "keys", "home").ensure(GRAPH)
    original, copy = (secrets.by_namespace[each] for each in ("home", "team"))
    assert set(original["data"]) == {"private.key", "private.key.pub"}
    assert copy["data"] == original["data"]
    assert [each["uid"] for each in copy["metadata"]["ownerReferences"]] == ["u"]
    if content is not None:
        assert original["metadata"] == metadata
