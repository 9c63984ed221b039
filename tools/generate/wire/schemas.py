"""JSON Schemas of what is on the wire, from the Structs that write and read it."""

from inspect import cleandoc
from typing import Any

import msgspec
from dynamo_shared.state import messages
from dynamo_shared.wire import cloudevents
from dynamo_shared.wire.specifications import BY_TYPE
from dynamo_shared.wire.specifications.base import CommandSpec, EventSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """All schemas, by file name without its ending: the envelope, the marker, and the data of each event and command.

    The names of the latter are the ends of the envelope's `dataschema`.
    """
    schemas = {"cloudevent": _schema(cloudevents.Event, "cloudevent", "CloudEvents 1.0 envelope")}
    schemas["state.synced"] = _schema(
        messages.SyncedMarker, "state.synced", "The marker of a complete resource in STATE"
    )
    for spec in BY_TYPE.values():
        name = file_name(spec)
        schemas[name] = _schema(spec.data, name, spec.description)
    return schemas


def file_name(spec: EventSpec | CommandSpec) -> str:
    """`deployment.ready.v1` for `com.nvidia.dynamo.deployment.ready.v1`."""
    return spec.type.removeprefix(f"{cloudevents.TYPE_PREFIX}.")


def _schema(type_: Any, name: str, title: str) -> dict[str, Any]:
    (root,), components = msgspec.json.schema_components([type_], ref_template="#/$defs/{name}")
    key = root.get("$ref", "").rpartition("/")[2]
    top = _unindented(components.pop(key, root))
    text = {"$schema": DIALECT, "$id": f"{cloudevents.SCHEMA_BASE}/{name}.json", **top, "title": title}
    if components:
        text["$defs"] = {part: _unindented(components[part]) for part in sorted(components)}
    return text


def _unindented(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose description, a docstring, is as Python 3.13 has it: without the indentation of its source."""
    return {**schema, "description": cleandoc(schema["description"])} if "description" in schema else schema
