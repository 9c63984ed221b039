"""A graph's life as any NATS client sees it: CloudEvents on subjects that can be filtered, each valid by its schema."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import nats
import pytest
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey

from .platform import eventually, frontend, graph, platform, settings, until_state

SCHEMAS = Path(__file__).parents[2] / "proto" / "schemas"
PREFIX = "com.nvidia.dynamo."


@dataclass
class Heard:
    """Events in the order of their arrival."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def of(self, name: str) -> list[str]:
        return [event["type"].split(".")[-2] for _, event in self.events if event["subject"].endswith(f"/{name}")]


@pytest.fixture
async def heard(control_plane, nats_server, namespace) -> AsyncIterator[Heard]:
    """Everything about a namespace, through a plain client that knows nothing of us, while the platform runs."""
    connection = await nats.connect(nats_server.url)
    result = Heard()

    async def take(message: Any) -> None:
        result.events.append((message.subject, json.loads(message.data)))

    await connection.subscribe(f"dynamo.evt.v1.*.{namespace}.>", cb=take)
    await connection.flush()
    try:
        async with platform(settings(control_plane.kubeconfig, nats_server.url)):
            yield result
    finally:
        await connection.close()


def validate(event: dict[str, Any]) -> None:
    """Raises where an event is not what is published about its type."""
    jsonschema.validate(event, json.loads((SCHEMAS / "cloudevent.json").read_text()))
    specific = SCHEMAS / f"{event['type'].removeprefix(PREFIX)}.json"
    jsonschema.validate(event["data"], json.loads(specific.read_text()))


async def test_a_life_from_created_to_deleted(heard: Heard, kube, namespace) -> None:
    key = ObjectKey(namespace, "disagg")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace))
    stored = await until_state(kube, key, "successful")
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)

    async def ended() -> bool:
        return "deleted" in heard.of("disagg")

    await eventually(ended, "deleted heard")
    assert heard.of("disagg") == ["created", "progressing", "ready", "deleted"]
    for subject, event in heard.events:
        validate(event)
        assert subject.startswith(f"dynamo.evt.v1.local.{namespace}.dynamographdeployment.disagg.")
        assert subject.endswith(event["type"].split(".")[-2])
        assert event["k8suid"] == stored["metadata"]["uid"]
    ready = next(event for _, event in heard.events if ".ready." in event["type"])
    assert ready["data"]["state"] == "successful"
    assert set(ready["data"]["components"]) == {"Frontend", "Prefill", "Decode"}
    assert len({event["id"] for _, event in heard.events}) == len(heard.events)


async def test_a_failure_says_why(heard: Heard, kube, namespace) -> None:
    broken = frontend()
    broken["podTemplate"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "0.5"}}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[broken]))
    await until_state(kube, ObjectKey(namespace, "disagg"), "failed")

    async def failed() -> dict[str, Any] | None:
        return next((event for _, event in heard.events if ".failed." in event["type"]), None)

    event = await eventually(failed, "failed heard")
    validate(event)
    assert "nvidia.com/gpu" in event["data"]["message"]
    assert "component Frontend" in event["data"]["message"]


async def test_events_are_kept_for_those_who_come_later(heard: Heard, kube, namespace, nats_server) -> None:
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend()]))
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")

    async def reported() -> bool:
        return "ready" in heard.of("disagg")

    await eventually(reported, "ready heard")
    connection = await nats.connect(nats_server.url)
    try:
        late = await connection.jetstream().subscribe(
            f"dynamo.evt.v1.*.{namespace}.dynamographdeployment.*.*", ordered_consumer=True
        )
        types = [json.loads((await late.next_msg(timeout=30)).data)["type"] for _ in heard.of("disagg")]
    finally:
        await connection.close()
    assert [name.split(".")[-2] for name in types] == heard.of("disagg")
