"""Events about the platform itself, and the answers to commands."""

from __future__ import annotations

import msgspec

from dynamo_shared.wire.specifications.base import ASKED, Count, EventIdentity, EventSpec

PLATFORM = "platform"
COMMAND = "command"


class ResyncData(msgspec.Struct, kw_only=True, frozen=True):
    """STATE was lost and has been filled again: a consumer that keeps data derived from it reads the last values again."""

    reason: str
    resources: list[str] = []


class CommandResult(msgspec.Struct, kw_only=True, frozen=True):
    """What became of a command; `causationid` of the envelope is the command's id."""

    service: str
    verb: str
    reason: str = ""
    message: str = ""
    deliveries: Count = 0


EVENTS: tuple[EventSpec, ...] = (
    EventSpec(
        family="platform",
        event="resync",
        kind=PLATFORM,
        publisher="watcher",
        data=ResyncData,
        identity=EventIdentity.VERSION,
        description="STATE was lost and has been filled again.",
    ),
    EventSpec(
        family="command",
        event="completed",
        kind=COMMAND,
        publisher=ASKED,
        data=CommandResult,
        identity=EventIdentity.CAUSE,
        description="A command was carried out.",
    ),
    EventSpec(
        family="command",
        event="failed",
        kind=COMMAND,
        publisher=ASKED,
        data=CommandResult,
        identity=EventIdentity.CAUSE,
        description="A command was refused, or given up after its last delivery.",
    ),
)
