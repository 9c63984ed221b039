"""Every event that the platform publishes and every command that it accepts: type, subject, data, identity, in one
table.

The AsyncAPI document, the JSON Schemas, the golden messages and the contract tests are generated from this table.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from dynamo_shared.wire.specifications import (
    checkpoint,
    deployment,
    discovery,
    image,
    legacy,
    planning,
    platform,
    scaling,
    workers,
)
from dynamo_shared.wire.specifications.base import CommandSpec, EventSpec, Int64

EVENTS: tuple[EventSpec, ...] = (
    *deployment.EVENTS,
    *checkpoint.EVENTS,
    *scaling.EVENTS,
    *discovery.EVENTS,
    *workers.EVENTS,
    *image.EVENTS,
    *legacy.EVENTS,
    *planning.EVENTS,
    *platform.EVENTS,
)

COMMANDS: tuple[CommandSpec, ...] = scaling.COMMANDS

_BY_EVENT = {(spec.kind, spec.event): spec for spec in EVENTS}
_SPECS: tuple[EventSpec | CommandSpec, ...] = (*EVENTS, *COMMANDS)
BY_TYPE = {spec.type: spec for spec in _SPECS}


T = TypeVar("T", bound=msgspec.Struct)


def fit(data: Mapping[str, Any] | msgspec.Struct, type_: type[T]) -> T:
    """Convert a mapping to an event's Struct; 64 bit integers may be int. msgspec.ValidationError if it is invalid."""
    if isinstance(data, Mapping):
        texts = {field.encode_name for field in msgspec.structs.fields(type_) if field.type == Int64}
        data = {name: str(value) if name in texts else value for name, value in data.items()}
    return msgspec.convert(data, type_, from_attributes=True)


def find(kind: str, event: str) -> EventSpec:
    """The event of a kind (any case) and a verb; KeyError if the table has none."""
    return _BY_EVENT[(kind.lower(), event)]
