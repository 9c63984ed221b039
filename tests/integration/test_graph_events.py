"""A graph's life as any NATS client sees it: CloudEvents on subjects that can be filtered, each valid by its schema."""

import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey

from .platform import eventually, graph, hearing, until_state

SCHEMAS = Path(__file__).parents[2] / "proto" / "schemas"
PREFIX = "com.nvidia.dynamo."


@pytest.fixture
async def heard(running_platform, shared_nats_server, namespace) -> AsyncIterator[list[tuple[str, KubeObject]]]:
    async with hearing(shared_nats_server.url, namespace) as heard:
        yield heard


def names(heard: list[tuple[str, KubeObject]]) -> list[str]:
    return [event["type"].split(".")[-2] for _, event in heard if event["subject"].endswith("/disagg")]


def validate(event: dict[str, Any]) -> None:
    """Raises if an event does not match the published schema of its type."""
    jsonschema.validate(event, json.loads((SCHEMAS / "cloudevent.json").read_text()))
    specific = SCHEMAS / f"{event['type'].removeprefix(PREFIX)}.json"
    jsonschema.validate(event["data"], json.loads(specific.read_text()))


async def test_events_of_a_graph_from_created_to_deleted(heard, kube, namespace) -> None:
    key = ObjectKey(namespace, "disagg")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace))
    stored = await until_state(kube, key, "successful")
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
    await eventually(lambda: "deleted" in names(heard), "the deletion is reported")
    # On a busy machine pods may be pending for several reasons, each of which is reported once.
    assert [name for name, _ in itertools.groupby(names(heard))] == ["created", "progressing", "ready", "deleted"]
    progress = [event["data"]["reason"] for _, event in heard if ".progressing." in event["type"]]
    assert len(set(progress)) == len(progress)
    for subject, event in heard:
        validate(event)
        assert subject.startswith(f"dynamo.evt.v1.local.{namespace}.dynamographdeployment.disagg.")
        assert subject.endswith(event["type"].split(".")[-2])
        assert event["k8suid"] == stored["metadata"]["uid"]
    ready = next(event for _, event in heard if ".ready." in event["type"])
    assert ready["data"]["state"] == "successful"
    assert set(ready["data"]["components"]) == {"Frontend", "Prefill", "Decode"}
    assert len({event["id"] for _, event in heard}) == len(heard)
