"""The envelope of events and commands: CloudEvents 1.0 as structured JSON.

The id is a hash of what identifies the event, so publishing an event again publishes the same message: NATS drops the
second one by its `Nats-Msg-Id`, and a consumer that remembers ids drops later ones.
"""

import hashlib
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

TYPE_PREFIX = "com.nvidia.dynamo"
CONTENT_TYPE = "application/cloudevents+json; charset=UTF-8"
SCHEMA_BASE = "https://schemas.dynamo.nvidia.com/platform/v1"

Data = TypeVar("Data")


class CloudEvent(msgspec.Struct, Generic[Data], kw_only=True, omit_defaults=True):
    """One event or command. Attribute names are those of the specification, plus the platform's extensions.

    `k8suid`, `resourceversion`, `generation`: the object of the event, at that time; `generation` is a string, like 64
    bit integers in protobuf's JSON. `causationid`: id of the command or event that this one answers.
    """

    specversion: Literal["1.0"]
    id: str
    source: str
    type: str
    subject: str
    time: str
    data: Data
    datacontenttype: str = ""
    dataschema: str = ""
    k8suid: str = ""
    resourceversion: str = ""
    generation: str = ""
    traceparent: str = ""
    causationid: str = ""


Event = CloudEvent[dict[str, Any]]
"""An event with data that is not converted to its type yet."""


def event_id(*parts: str) -> str:
    """Deterministic id of the parts; their boundaries count, so ("a", "bc") differs from ("ab", "c")."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        digest.update(f"{len(raw)}:".encode())
        digest.update(raw)
    return digest.hexdigest()


def source(cluster: str, namespace: str) -> str:
    """URI reference of the event's source."""
    return f"/clusters/{cluster}/namespaces/{namespace}" if namespace else f"/clusters/{cluster}"


def timestamp(moment: datetime | None = None) -> str:
    """A time (now by default) as RFC 3339 in UTC with milliseconds."""
    return (moment or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def schema_url(type_: str) -> str:
    """URL of the JSON Schema of an event type's data."""
    return f"{SCHEMA_BASE}/{type_.removeprefix(TYPE_PREFIX + '.')}.json"


def mirrored_headers(event: CloudEvent[Any]) -> dict[str, str]:
    """NATS headers that repeat the attributes, so that a consumer can filter without parsing the payload."""
    headers = {
        "content-type": CONTENT_TYPE,
        "ce-specversion": event.specversion,
        "ce-id": event.id,
        "ce-type": event.type,
        "ce-source": event.source,
        "ce-subject": event.subject,
    }
    if event.causationid:
        headers["ce-causationid"] = event.causationid
    if event.traceparent:
        headers["traceparent"] = event.traceparent
    return headers


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Event)


def encode(event: CloudEvent[Any]) -> bytes:
    """Encode an event for the wire."""
    return _encoder.encode(event)


def decode(payload: bytes) -> Event:
    """Decode an event, without unknown attributes; msgspec.DecodeError (a ValueError) if the payload is invalid."""
    try:
        return _decoder.decode(payload)
    except RecursionError as error:
        raise msgspec.DecodeError("JSON is nested too deeply") from error
