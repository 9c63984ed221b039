"""docs/reference/events.md: every event and command, from the tables that the code uses for publishing."""

from typing import Any

from dynamo_shared.bus import streams
from dynamo_shared.wire.specifications import COMMANDS, EVENTS
from dynamo_shared.wire.specifications.base import CommandSpec, EventSpec

from tools.generate.reference.fields import fields, limits_of, type_of
from tools.generate.reference.markdown import code, page, table
from tools.generate.wire import asyncapi, schemas

SOURCE = "shared/src/dynamo_shared/wire/specifications/"
_SCHEMAS = "../../proto/schemas"


def events() -> str:
    """The whole page."""
    specs: tuple[EventSpec | CommandSpec, ...] = (*EVENTS, *COMMANDS)
    data = {spec.data: schemas.schemas()[schemas.file_name(spec)] for spec in specs}
    return page(
        "Events and commands",
        SOURCE,
        "CloudEvents 1.0 in JSON, on NATS JetStream. The [AsyncAPI document](../../proto/asyncapi.yaml) has the same for "
        f"tools, [proto/schemas]({_SCHEMAS}) the JSON Schemas, [proto/golden](../../proto/golden) a message of each kind. "
        "Types and subjects contain their version: an incompatible change gets a new version next to the old one. "
        "Tokens of subjects are percent-encoded.",
        "## Events",
        table(("Type", "When", "Subject", "Repeated", "Data"), (_event(spec) for spec in EVENTS)),
        "## Commands",
        table(("Type", "What for", "Subject", "Data"), (_command(spec) for spec in COMMANDS)),
        "## Streams",
        table(("Stream", "Subjects", "Content"), (_stream(each) for each in streams.ALL)),
        "## Data",
        *(part for type_, schema in data.items() for part in _data(type_.__name__, schema)),
    )


def _event(spec: EventSpec) -> tuple[str, ...]:
    again = {
        "uid": "never: once in the life of an object",
        "resourceVersion": "it may happen again",
        "causationid": "once a command",
    }
    return (
        code(spec.type),
        spec.description,
        code(asyncapi.where(spec)[1]),
        again[spec.identity.value],
        _data_link(spec),
    )


def _command(spec: CommandSpec) -> tuple[str, ...]:
    return code(spec.type), spec.description, code(asyncapi.where(spec)[1]), _data_link(spec)


def _data_link(spec: EventSpec | CommandSpec) -> str:
    name = spec.data.__name__
    return f"[{name}](#{name.lower()}), [schema]({_SCHEMAS}/{schemas.file_name(spec)}.json)"


def _stream(spec: streams.StreamSpec) -> tuple[str, ...]:
    return code(spec.name), ", ".join(code(each) for each in spec.subjects), f"{spec.description}."


def _data(name: str, schema: dict[str, Any]) -> list[str]:
    rows = [
        (
            code(each.path),
            type_of(each.schema),
            "yes" if each.required else "",
            "; ".join(limits_of(each.schema)),
            str(each.schema.get("description", "")),
        )
        for each in fields(schema)
        if not each.is_element
    ]
    return [
        f"### {name}",
        str(schema.get("description", "")),
        table(("Field", "Type", "Required", "Allowed", "Meaning"), rows),
    ]
