"""Types of the tables of events and commands.

64 bit integers are strings, like in protobuf's JSON mapping; counts are 32 bit.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec

from dynamo_shared.wire.cloudevents import TYPE_PREFIX

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Int64 = Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]+$")]


class EventIdentity(StrEnum):
    """What distinguishes an event from an earlier one of the same type and reason."""

    OBJECT = "uid"
    """It happens once in the life of an object."""
    VERSION = "resourceVersion"
    """It may happen again at another version of the object."""
    CAUSE = "causationid"
    """It answers one command or event, once."""


ASKED = ""
"""Publisher of an answer: the service that received the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSpec:
    """One kind of event."""

    family: str
    """first part of the type: `deployment` in `com.nvidia.dynamo.deployment.ready.v1`"""
    event: str
    kind: str
    """kind token of the subject, lower case"""
    publisher: str
    """the one service that publishes it; `ASKED` for answers to commands"""
    data: type[msgspec.Struct]
    identity: EventIdentity
    description: str

    @property
    def type(self) -> str:
        """CloudEvents type."""
        return f"{TYPE_PREFIX}.{self.family}.{self.event}.v1"


@dataclass(frozen=True, slots=True)
class EventFamily:
    """The common fields of a family's events. A call with a verb and a description creates an entry of the table."""

    family: str
    kind: str
    publisher: str
    data: type[msgspec.Struct]
    identity: EventIdentity = EventIdentity.VERSION

    def __call__(self, event: str, description: str, identity: EventIdentity | None = None) -> EventSpec:
        """The event of a verb; `identity` if it differs from the family's."""
        return EventSpec(
            family=self.family,
            event=event,
            kind=self.kind,
            publisher=self.publisher,
            data=self.data,
            identity=identity or self.identity,
            description=description,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """One kind of command."""

    service: str
    verb: str
    senders: tuple[str, ...]
    """services of the platform that send it; people may send it, too"""
    data: type[msgspec.Struct]
    description: str

    @property
    def type(self) -> str:
        """CloudEvents type."""
        return f"{TYPE_PREFIX}.command.{self.verb}.v1"
