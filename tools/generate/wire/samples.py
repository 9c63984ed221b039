"""Golden messages: one of each event and command, and of each STATE message, exactly as they are on the wire.

Written to `proto/golden/` for the tests of integrators in other languages, and checked with the schemas by this
project's tests.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.state import messages
from dynamo_shared.state.versions import Version
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications import COMMANDS, EVENTS
from dynamo_shared.wire.specifications.base import CommandSpec, EventSpec
from dynamo_shared.wire.specifications.checkpoint import CheckpointData
from dynamo_shared.wire.specifications.platform import COMMAND, PLATFORM

from tools.generate.wire.sample_data import CHANGED, DATA, NAME, NAMESPACE

CLUSTER = "production"
UID = "0b1c6f0e-7d0f-4a55-8f0e-2f6d5b1f9a11"
MOMENT = datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC)
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Golden(msgspec.Struct, kw_only=True, rename="camel"):
    """A message with its subject and headers; `payload` is null for a tombstone."""

    subject: str
    headers: dict[str, str]
    payload: Any


def golden() -> dict[str, Golden]:
    """All golden messages, by file name without its ending."""
    samples = {f"{spec.family}.{spec.event}": _event(spec) for spec in EVENTS}
    samples |= {f"command.{spec.verb}": _command(spec) for spec in COMMANDS}
    return samples | _state()


def _event(spec: EventSpec) -> Golden:
    data = msgspec.structs.replace(DATA[spec.data], **CHANGED.get(f"{spec.family}.{spec.event}", {}))
    name, namespace, causation = NAME, NAMESPACE, ""
    if isinstance(data, CheckpointData):
        name = data.name
    if spec.kind == PLATFORM:
        name, namespace = CLUSTER, ""
    if spec.kind == COMMAND:
        name = causation = cloudevents.event_id(CLUSTER, NAMESPACE, "com.nvidia.dynamo.command.scale.v1", "request-1")
    about = spec.kind not in (PLATFORM, COMMAND)
    event = cloudevents.CloudEvent[Any](
        specversion="1.0",
        id=cloudevents.event_id("golden", spec.type),
        source=cloudevents.source(CLUSTER, namespace),
        type=spec.type,
        subject=f"{spec.kind}/{name}",
        time=cloudevents.timestamp(MOMENT),
        data=data,
        datacontenttype="application/json",
        dataschema=cloudevents.schema_url(spec.type),
        k8suid=UID if about else "",
        resourceversion="4711" if about else "",
        generation="3" if about else "",
        traceparent=TRACEPARENT,
        causationid=causation,
    )
    return _golden(subjects.event_subject(CLUSTER, namespace, spec.kind, name, spec.event), event)


def _command(spec: CommandSpec) -> Golden:
    command = cloudevents.CloudEvent[Any](
        specversion="1.0",
        id=cloudevents.event_id(CLUSTER, NAMESPACE, spec.type, "request-1"),
        source=cloudevents.source(CLUSTER, NAMESPACE),
        type=spec.type,
        subject=f"{spec.service}/{spec.verb}",
        time=cloudevents.timestamp(MOMENT),
        data=DATA[spec.data],
        datacontenttype="application/json",
        dataschema=cloudevents.schema_url(spec.type),
        traceparent=TRACEPARENT,
    )
    return _golden(subjects.command_subject(CLUSTER, NAMESPACE, spec.service, spec.verb), command)


def _golden(subject: str, event: cloudevents.CloudEvent[Any]) -> Golden:
    headers = {"Nats-Msg-Id": event.id, **cloudevents.mirrored_headers(event)}
    return Golden(subject=subject, headers=headers, payload=msgspec.json.decode(cloudevents.encode(event)))


def _state() -> dict[str, Golden]:
    resource = DYNAMO_GRAPH_DEPLOYMENTS
    obj: dict[str, Any] = {
        **resource.type_meta,
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "uid": UID,
            "resourceVersion": "4711",
            "generation": 3,
            "creationTimestamp": "2026-03-01T11:59:00Z",
        },
        "spec": {"backendFramework": "vllm"},
    }
    subject = subjects.state_subject(CLUSTER, resource.id, ObjectKey(NAMESPACE, NAME))
    version = Version(UID, 4720, "2026-03-01T11:59:00Z")
    marker = messages.SyncedMarker(
        resource=resource.id, resource_version="4720", count=1, time=cloudevents.timestamp(MOMENT)
    )
    return {
        "state.object": Golden(
            subject=subject, headers=messages.object_headers(obj, messages.ChangeType.MODIFIED), payload=obj
        ),
        "state.tombstone": Golden(subject=subject, headers=messages.tombstone_headers(version), payload=None),
        "state.synced": Golden(
            subject=subjects.synced_subject(CLUSTER, resource.id),
            headers=messages.synced_headers(marker),
            payload=msgspec.json.decode(messages.encode_marker(marker)),
        ),
    }
