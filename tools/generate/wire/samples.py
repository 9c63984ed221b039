"""Golden messages: one of each event and command, and of each STATE message, exactly as they stand on the wire.

Written to `proto/golden/` for integrators in other languages to test against, and held to the schemas by our own tests.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.state import messages
from dynamo_shared.state.versions import Version
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications import (
    COMMAND,
    COMMANDS,
    EVENTS,
    PLATFORM,
    CheckpointData,
    CommandResult,
    CommandSpec,
    ComponentCounts,
    DeploymentData,
    EventSpec,
    ResyncData,
    ScaleData,
    ScaleTarget,
)

CLUSTER = "production"
NAMESPACE = "team-a"
NAME = "llama-3.1"
UID = "0b1c6f0e-7d0f-4a55-8f0e-2f6d5b1f9a11"
MOMENT = datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC)
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

_STATES = {
    "ready": ("successful", "all_resources_ready", "All components are ready"),
    "failed": ("failed", "InvalidPodTemplate", "Decode: spec.containers[0].image: Required value"),
}

_CHECKPOINTS = {
    "creating": ("Creating", "JobCreated", "Job checkpoint-job-96429b2725761a09-1 loads the engine"),
    "ready": ("Ready", "JobSucceeded", "pods can start from it"),
    "failed": ("Failed", "JobFailed", "DeadlineExceeded: Job was active longer than specified deadline"),
}

DATA: dict[type[msgspec.Struct], msgspec.Struct] = {
    DeploymentData: DeploymentData(
        name=NAME,
        namespace=NAMESPACE,
        state="pending",
        reason="some_resources_not_ready",
        message="Decode: 1 of 2 ready",
        # Above 2^53: it survives JSON only as a string.
        generation="9007199254740993",
        backend_framework="vllm",
        components={
            "Frontend": ComponentCounts(replicas=1, ready=1, updated=1, available=1),
            "Decode": ComponentCounts(replicas=2, ready=1, updated=2, available=1),
        },
    ),
    CheckpointData: CheckpointData(
        name="checkpoint-96429b2725761a09",
        namespace=NAMESPACE,
        generation="1",
        identity_hash="96429b2725761a09",
        model="meta-llama/Llama-2-7b-hf",
        backend_framework="vllm",
        job_name="checkpoint-job-96429b2725761a09-1",
        location="/checkpoints/96429b2725761a09/versions/1",
    ),
    ResyncData: ResyncData(
        reason="STATE was lost and has been filled again",
        resources=["dynamographdeployments.nvidia.com", "deployments.apps"],
    ),
    CommandResult: CommandResult(
        service="scaler", verb="scale", reason="NotFound", message="there is no such graph", deliveries=1
    ),
    ScaleData: ScaleData(
        graph_deployment=NAME,
        targets=[ScaleTarget(component="Decode", replicas=3), ScaleTarget(sub_component_type="prefill", replicas=2)],
        reason="load",
        requester="planner",
        expected_generation="9007199254740993",
    ),
}


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
    data = spec.sample or DATA[spec.data]
    name, namespace, causation = NAME, NAMESPACE, ""
    if isinstance(data, DeploymentData):
        now = _STATES.get(spec.event, (data.state, data.reason, data.message))
        data = msgspec.structs.replace(data, state=now[0], reason=now[1], message=now[2])
    if isinstance(data, CheckpointData):
        phase, reason, message = _CHECKPOINTS[spec.event]
        name, data = data.name, msgspec.structs.replace(data, phase=phase, reason=reason, message=message)
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
