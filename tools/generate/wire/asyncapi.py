"""The AsyncAPI 3.0 document, from the same tables that the code uses for publishing.

AsyncAPI's NATS bindings do not cover JetStream, so the retention of a stream is under `x-jetstream`.
"""

from typing import Any

from dynamo_shared.bus import permissions, streams
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.state import messages
from dynamo_shared.wire import subjects
from dynamo_shared.wire.specifications import BY_TYPE, COMMANDS
from dynamo_shared.wire.specifications.base import CommandSpec, EventSpec

from tools.generate.wire import schemas

READER = permissions.EVENT_READER
SECURITY = {
    "type": "userPassword",
    "description": f"Each program is its own NATS user. Programs of others log in as {READER}, which may subscribe to the "
    f"events of its cluster, dynamo.evt.v1.<cluster>.>, and create named consumers of {streams.EVENTS.name}. The "
    f"server sends answers only below {subjects.inbox_prefix(READER)}: set this inbox prefix for the connection. "
    "docs/events.md shows where the password is.",
}
PARAMETERS = {
    "cluster": "Name of the Kubernetes cluster; one NATS may serve several.",
    "namespace": "Kubernetes namespace; `_` for cluster-scoped objects.",
    "name": "Name of the object, percent-encoded.",
    "resource": "Group resource, percent-encoded: `deployments%2Eapps`.",
}

STATE_HEADERS = {
    messages.UID: "metadata.uid of the object",
    messages.RESOURCE_VERSION: "metadata.resourceVersion; compares as an integer",
    messages.GENERATION: "metadata.generation, omitted if the object has none",
    messages.CREATED: "metadata.creationTimestamp",
    messages.ENCODING: "`zlib` if the payload is compressed (RFC 1950), which happens above 128 KiB; otherwise omitted",
    "traceparent": "W3C trace context, if known",
}


def document(version: str) -> dict[str, Any]:
    """The whole document."""
    channels, operations, messages = _state()
    for spec in BY_TYPE.values():
        name = schemas.file_name(spec)
        stream, address = where(spec)
        takes = isinstance(spec, CommandSpec)
        messages[name] = _event_message(spec, name)
        channels[name] = _channel(stream, address, spec.description, name)
        operations[name] = _operation("receive" if takes else "send", name, spec.description)
    letters = f"{subjects.DEAD_LETTER_PREFIX}.{{cluster}}.{{namespace}}.{{service}}.{{verb}}"
    channels["dead-letters"] = {
        "address": letters,
        "description": "Failed commands, unchanged, with headers reason, error and deliveries.",
        "parameters": {**_parameters(letters), "service": {}, "verb": {}},
        "messages": {schemas.file_name(spec): _message(schemas.file_name(spec)) for spec in COMMANDS},
        "x-jetstream": _jetstream(streams.DEAD_LETTERS),
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Dynamo Platform",
            "version": version,
            "description": "Messages that the platform publishes on NATS, and commands that it accepts there. Generated; do "
            "not edit.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "nats": {
                "host": "127.0.0.1:4222",
                "protocol": "nats",
                "description": "The platform's own NATS, with JetStream. Workloads use another NATS. The NATS server of the "
                "chart requires TLS, with its own authority (ca.crt).",
                "security": [{"$ref": "#/components/securitySchemes/user"}],
                "x-inbox-prefix": subjects.inbox_prefix(READER),
            }
        },
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages, "securitySchemes": {"user": SECURITY}},
    }


def _state() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    address = f"{subjects.STATE_PREFIX}.{{cluster}}.{{resource}}.{{namespace}}.{{name}}"
    marker = f"{subjects.STATE_PREFIX}.{{cluster}}.{{resource}}.{subjects.SYNCED}"
    messages = {
        "state.object": {
            "contentType": "application/json",
            "summary": "An object as Kubernetes stores it, without managedFields",
            "headers": _state_headers("added", "modified"),
            "payload": {"type": "object"},
        },
        "state.tombstone": {
            "summary": f"A deleted object; the payload is empty. The message stays {streams.TOMBSTONE_TTL:.0f} seconds",
            "headers": _state_headers("deleted"),
        },
        "state.synced": {
            "contentType": "application/json",
            "summary": "All objects of the resource are in STATE",
            "headers": _state_headers("synced"),
            "payload": {"$ref": "schemas/state.synced.json"},
        },
    }
    channels = {
        "state": {
            "address": address,
            "description": "The last message of a subject is the object.",
            "parameters": _parameters(address),
            "messages": {name: _message(name) for name in ("state.object", "state.tombstone")},
            "x-jetstream": _jetstream(streams.STATE),
        },
        "state.synced": _channel(streams.STATE, marker, "One token fewer than any object's subject.", "state.synced"),
    }
    operations = {
        "state": _operation("send", "state", "Publishes each object that the platform reads."),
        "state.synced": _operation("send", "state.synced", "Reports that a resource is complete."),
    }
    return channels, operations, messages


def where(spec: EventSpec | CommandSpec) -> tuple[StreamSpec, str]:
    """Stream and subject of an event or a command, with the names of its tokens in braces."""
    if isinstance(spec, CommandSpec):
        return streams.COMMANDS, f"{subjects.COMMAND_PREFIX}.{{cluster}}.{{namespace}}.{spec.service}.{spec.verb}"
    return streams.EVENTS, f"{subjects.EVENT_PREFIX}.{{cluster}}.{{namespace}}.{spec.kind}.{{name}}.{spec.event}"


def _event_message(spec: EventSpec | CommandSpec, name: str) -> dict[str, Any]:
    return {
        "name": spec.type,
        "summary": spec.description,
        "contentType": "application/cloudevents+json",
        "headers": {
            "type": "object",
            "properties": {
                "Nats-Msg-Id": {"type": "string", "description": "the event's id: a replay is the same message"},
                "ce-id": {"type": "string"},
                "ce-type": {"const": spec.type},
                "ce-source": {"type": "string"},
                "ce-subject": {"type": "string"},
                "traceparent": {"type": "string"},
            },
        },
        "payload": {
            "allOf": [
                {"$ref": "schemas/cloudevent.json"},
                {"properties": {"type": {"const": spec.type}, "data": {"$ref": f"schemas/{name}.json"}}},
            ]
        },
    }


def _channel(stream: StreamSpec, address: str, description: str, message: str) -> dict[str, Any]:
    return {
        "address": address,
        "description": description,
        "parameters": _parameters(address),
        "messages": {message: _message(message)},
        "x-jetstream": _jetstream(stream),
    }


def _operation(action: str, channel: str, summary: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}, "summary": summary}


def _message(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/messages/{name}"}


def _parameters(address: str) -> dict[str, Any]:
    return {name: {"description": text} for name, text in PARAMETERS.items() if f"{{{name}}}" in address}


def _state_headers(*changes: str) -> dict[str, Any]:
    about = {messages.RESOURCE_VERSION} if changes == ("synced",) else set(STATE_HEADERS)
    properties: dict[str, Any] = {
        name: {"type": "string", "description": text} for name, text in STATE_HEADERS.items() if name in about
    }
    properties[messages.CHANGE] = {"enum": list(changes)}
    return {"type": "object", "properties": properties, "required": [messages.RESOURCE_VERSION, messages.CHANGE]}


def _jetstream(spec: StreamSpec) -> dict[str, Any]:
    return {
        "stream": spec.name,
        "subjects": list(spec.subjects),
        "retention": spec.retention.value,
        "discard": spec.discard.value,
        "maxAgeSeconds": spec.max_age,
        "maxMessages": spec.max_messages,
        "maxMessagesPerSubject": spec.max_messages_per_subject,
        "maxBytes": spec.max_bytes,
        "duplicateWindowSeconds": spec.duplicate_window,
        "messageTtl": spec.message_ttl,
    }
