"""The envelope of events and commands: CloudEvents 1.0 as structured JSON.

The id is a hash of what makes the event this event, so publishing it again is publishing the same message: NATS drops
the second one by its `Nats-Msg-Id`, and a consumer that remembers ids drops later ones.
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
    """One event or command. Attribute names are those of the specification, with our extensions.

    `k8suid`, `resourceversion`, `generation`: the object the event is about, as it was; `generation` is written as a
    string, as 64 bit integers are in protobuf's JSON. `causationid`: id of the command or event this one answers.
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
"""An event whose data has not been given a type yet."""


def event_id(*parts: str) -> str:
    """Deterministic id of the parts; their borders count, so ("a", "bc") differs from ("ab", "c")."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        digest.update(f"{len(raw)}:".encode())
        digest.update(raw)
    return digest.hexdigest()


def source(cluster: str, namespace: str) -> str:
    """URI reference of where the event comes from."""
    return f"/clusters/{cluster}/namespaces/{namespace}" if namespace else f"/clusters/{cluster}"


def timestamp(moment: datetime | None = None) -> str:
    """A moment (now by default) as RFC 3339 in UTC with milliseconds."""
    return (moment or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def schema_url(type_: str) -> str:
    """Where the JSON Schema of an event type's data is published."""
    return f"{SCHEMA_BASE}/{type_.removeprefix(TYPE_PREFIX + '.')}.json"


def mirrored_headers(event: CloudEvent[Any]) -> dict[str, str]:
    """NATS headers that repeat the attributes, so that a consumer can choose without parsing the payload."""
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
    """An event as it stands on the wire."""
    return _encoder.encode(event)


def decode(payload: bytes) -> Event:
    """An event from the wire without unknown attributes; msgspec.DecodeError (a ValueError) where the payload is not one."""
    try:
        return _decoder.decode(payload)
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deeply") from error
