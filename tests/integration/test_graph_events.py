"""A graph's life as any NATS client sees it: CloudEvents on subjects that can be filtered, each valid by its schema."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema
import nats
import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey

from .platform import eventually, frontend, graph, hearing, until_state, worker

SCHEMAS = Path(__file__).parents[2] / "proto" / "schemas"
PREFIX = "com.nvidia.dynamo."


@pytest.fixture
async def heard(running_platform, shared_nats_server, namespace) -> AsyncIterator[list[tuple[str, KubeObject]]]:
    async with hearing(shared_nats_server.url, namespace) as heard:
        yield heard


def names(heard: list[tuple[str, KubeObject]], of: str = "disagg") -> list[str]:
    return [event["type"].split(".")[-2] for _, event in heard if event["subject"].endswith(f"/{of}")]


def validate(event: dict[str, Any]) -> None:
    """Raises where an event is not what is published about its type."""
    jsonschema.validate(event, json.loads((SCHEMAS / "cloudevent.json").read_text()))
    specific = SCHEMAS / f"{event['type'].removeprefix(PREFIX)}.json"
    jsonschema.validate(event["data"], json.loads(specific.read_text()))


async def test_a_life_from_created_to_deleted(heard, kube, namespace) -> None:
    key = ObjectKey(namespace, "disagg")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace))
    stored = await until_state(kube, key, "successful")
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
    await eventually(lambda: "deleted" in names(heard), "deleted heard")
    assert names(heard) == ["created", "progressing", "ready", "deleted"]
    for subject, event in heard:
        validate(event)
        assert subject.startswith(f"dynamo.evt.v1.local.{namespace}.dynamographdeployment.disagg.")
        assert subject.endswith(event["type"].split(".")[-2])
        assert event["k8suid"] == stored["metadata"]["uid"]
    ready = next(event for _, event in heard if ".ready." in event["type"])
    assert ready["data"]["state"] == "successful"
    assert set(ready["data"]["components"]) == {"Frontend", "Prefill", "Decode"}
    assert len({event["id"] for _, event in heard}) == len(heard)


async def test_the_life_of_a_component_without_a_graph(heard, kube, namespace) -> None:
    alone = {
        "apiVersion": DYNAMO_COMPONENT_DEPLOYMENTS.api_version,
        "kind": DYNAMO_COMPONENT_DEPLOYMENTS.kind,
        "metadata": {"name": "alone", "namespace": namespace},
        "spec": {"backendFramework": "vllm", **worker("Alone")},
    }
    await kube.create(DYNAMO_COMPONENT_DEPLOYMENTS, alone)

    async def reached(event: str) -> bool:
        return event in names(heard, "alone")

    await eventually(lambda: reached("ready"), "ready heard")
    await kube.delete(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey(namespace, "alone"))
    await eventually(lambda: reached("deleted"), "deleted heard")
    # Where its pods are ready before anything is reported, it was never on its way.
    assert [each for each in names(heard, "alone") if each != "progressing"] == ["ready", "deleted"]
    for subject, event in heard:
        validate(event)
        assert subject.startswith(f"dynamo.evt.v1.local.{namespace}.dynamocomponentdeployment.alone.")
    ready = next(event for _, event in heard if ".ready." in event["type"])
    assert ready["data"]["replicas"] == {"replicas": 1, "ready": 1, "updated": 1, "available": 1}


async def test_a_failure_says_why(heard, kube, namespace) -> None:
    broken = frontend()
    broken["podTemplate"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "0.5"}}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[broken]))
    await until_state(kube, ObjectKey(namespace, "disagg"), "failed")
    event = await eventually(
        lambda: next((event for _, event in heard if ".failed." in event["type"]), None), "failed heard"
    )
    validate(event)
    assert "nvidia.com/gpu" in event["data"]["message"]
    assert "component Frontend" in event["data"]["message"]


async def test_events_are_kept_for_those_who_come_later(heard, kube, namespace, shared_nats_server) -> None:
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend()]))
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    await eventually(lambda: "ready" in names(heard), "ready heard")
    connection = await nats.connect(shared_nats_server.url)
    try:
        late = await connection.jetstream().subscribe(
            f"dynamo.evt.v1.*.{namespace}.dynamographdeployment.*.*", ordered_consumer=True
        )
        types = [json.loads((await late.next_msg(timeout=30)).data)["type"] for _ in names(heard)]
    finally:
        await connection.close()
    assert [name.split(".")[-2] for name in types] == names(heard)
