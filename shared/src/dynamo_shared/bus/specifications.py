"""Every event that the platform publishes and every command it takes: type, subject, data, identity, in one table.

The AsyncAPI document, the JSON Schemas, the golden messages and the contract tests are made from this table.
64 bit integers are strings, as protobuf's JSON mapping writes them; counts are 32 bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec

from dynamo_shared.bus.cloudevents import TYPE_PREFIX

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Int64 = Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]+$")]


class Identity(StrEnum):
    """What makes an event another one than that of the same type and reason before it."""

    OBJECT = "uid"
    """It happens once in the life of an object."""
    VERSION = "resourceVersion"
    """It may happen again, seen from another version of the object."""
    CAUSE = "causationid"
    """It answers one command or event, once."""


class ComponentCounts(msgspec.Struct, kw_only=True, frozen=True):
    """Replicas of one component: wanted, and how many are ready, up to date and available."""

    replicas: Count = 0
    ready: Count = 0
    updated: Count = 0
    available: Count = 0


class DeploymentData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoGraphDeployment as it was when the event happened."""

    name: str
    namespace: str
    state: str = ""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    backend_framework: str = ""
    components: dict[str, ComponentCounts] = {}


def deployment_data(graph: dict[str, Any], status: Mapping[str, Any] | None = None) -> DeploymentData:
    """Data of a deployment event from a DynamoGraphDeployment and its status (the object's own by default).

    Reason and message are those of its Ready condition.
    """
    metadata = graph["metadata"]
    status = graph.get("status", {}) if status is None else status
    ready: Mapping[str, Any] = next(
        (entry for entry in status.get("conditions", ()) if entry.get("type") == "Ready"), {}
    )
    return DeploymentData(
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        state=status.get("state", ""),
        reason=ready.get("reason", ""),
        message=ready.get("message", ""),
        generation=str(metadata.get("generation", 0)),
        backend_framework=graph.get("spec", {}).get("backendFramework", ""),
        components={name: _counts(entry) for name, entry in (status.get("components") or {}).items()},
    )


def _counts(entry: Mapping[str, Any]) -> ComponentCounts:
    return ComponentCounts(
        replicas=entry.get("replicas") or 0,
        ready=entry.get("readyReplicas") or 0,
        updated=entry.get("updatedReplicas") or 0,
        available=entry.get("availableReplicas") or 0,
    )


class CheckpointData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoCheckpoint as it was when the event happened."""

    name: str
    namespace: str
    phase: str = ""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    identity_hash: str = ""
    model: str = ""
    backend_framework: str = ""
    job_name: str = ""
    location: str = ""


def checkpoint_data(checkpoint: dict[str, Any], status: Mapping[str, Any], reason: str) -> CheckpointData:
    """Data of a checkpoint event from a DynamoCheckpoint, its new status and the reason for it."""
    metadata = checkpoint["metadata"]
    identity = checkpoint.get("spec", {}).get("identity", {})
    return CheckpointData(
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        phase=status.get("phase", ""),
        reason=reason,
        message=status.get("message", ""),
        generation=str(metadata.get("generation", 0)),
        identity_hash=status.get("identityHash", ""),
        model=identity.get("model", ""),
        backend_framework=identity.get("backendFramework", ""),
        job_name=status.get("jobName", ""),
        location=status.get("location", ""),
    )


class ResyncData(msgspec.Struct, kw_only=True, frozen=True):
    """STATE was lost and has been filled again: whoever keeps something made of it reads the last values again."""

    reason: str
    resources: list[str] = []


class CommandResult(msgspec.Struct, kw_only=True, frozen=True):
    """What became of a command; `causationid` of the envelope is the command's id."""

    service: str
    verb: str
    reason: str = ""
    message: str = ""
    deliveries: Count = 0


class ScaleData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Asks for so many replicas of components of a graph deployment; components left out stay as they are."""

    graph_deployment: str
    replicas: dict[str, Count]
    expected_resource_version: str = ""
    """refuse where the graph deployment has another resourceVersion by now; empty: do not look"""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSpec:
    """One kind of event."""

    family: str
    """first part of the type: `deployment` in `com.nvidia.dynamo.deployment.ready.v1`"""
    event: str
    kind: str
    """kind token of the subject, lower case"""
    data: type[msgspec.Struct]
    identity: Identity
    description: str

    @property
    def type(self) -> str:
        """CloudEvents type."""
        return f"{TYPE_PREFIX}.{self.family}.{self.event}.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """One kind of command."""

    service: str
    verb: str
    data: type[msgspec.Struct]
    description: str

    @property
    def type(self) -> str:
        """CloudEvents type."""
        return f"{TYPE_PREFIX}.command.{self.verb}.v1"


GRAPH_DEPLOYMENT = "dynamographdeployment"
CHECKPOINT = "dynamocheckpoint"
PLATFORM = "platform"
COMMAND = "command"


def _deployment(event: str, identity: Identity, description: str) -> EventSpec:
    return EventSpec(
        family="deployment",
        event=event,
        kind=GRAPH_DEPLOYMENT,
        data=DeploymentData,
        identity=identity,
        description=description,
    )


def _checkpoint(event: str, description: str) -> EventSpec:
    return EventSpec(
        family="checkpoint",
        event=event,
        kind=CHECKPOINT,
        data=CheckpointData,
        identity=Identity.VERSION,
        description=description,
    )


EVENTS: tuple[EventSpec, ...] = (
    _deployment("created", Identity.OBJECT, "The platform has seen a new graph deployment."),
    _deployment("progressing", Identity.VERSION, "Its components are on their way to what is wanted."),
    _deployment("ready", Identity.VERSION, "All its components are ready."),
    _deployment("failed", Identity.VERSION, "It cannot become ready as it is; reason and message say why."),
    _deployment("deleted", Identity.OBJECT, "It is gone, and all that was made for it."),
    _checkpoint("creating", "A Job loads its engine, for the snapshot agent to take the checkpoint."),
    _checkpoint("ready", "Pods can start from it."),
    _checkpoint("failed", "It could not be taken; reason and message say why."),
    EventSpec(
        family="platform",
        event="resync",
        kind=PLATFORM,
        data=ResyncData,
        identity=Identity.VERSION,
        description="STATE was lost and has been filled again.",
    ),
    EventSpec(
        family="command",
        event="completed",
        kind=COMMAND,
        data=CommandResult,
        identity=Identity.CAUSE,
        description="A command was carried out.",
    ),
    EventSpec(
        family="command",
        event="failed",
        kind=COMMAND,
        data=CommandResult,
        identity=Identity.CAUSE,
        description="A command was refused, or given up after its last delivery.",
    ),
)

COMMANDS: tuple[CommandSpec, ...] = (
    CommandSpec(
        service="scaler",
        verb="scale",
        data=ScaleData,
        description="Asks for other replica counts of a graph deployment's components.",
    ),
)

_BY_EVENT = {(spec.kind, spec.event): spec for spec in EVENTS}
_SPECS: tuple[EventSpec | CommandSpec, ...] = (*EVENTS, *COMMANDS)
BY_TYPE = {spec.type: spec for spec in _SPECS}


T = TypeVar("T", bound=msgspec.Struct)


def fit(data: Mapping[str, Any] | msgspec.Struct, type_: type[T]) -> T:
    """A mapping as the Struct of an event; 64 bit integers may be int. msgspec.ValidationError where it is none."""
    if isinstance(data, Mapping):
        texts = {field.encode_name for field in msgspec.structs.fields(type_) if field.type == Int64}
        data = {name: str(value) if name in texts else value for name, value in data.items()}
    return msgspec.convert(data, type_, from_attributes=True)


def find(kind: str, event: str) -> EventSpec:
    """The event of a kind (any case) and a verb; KeyError where the table has none."""
    return _BY_EVENT[(kind.lower(), event)]
