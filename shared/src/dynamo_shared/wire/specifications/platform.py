"""Events about the platform itself, and the answers to commands."""

import msgspec

from dynamo_shared.wire.specifications.base import ASKED, Count, EventFamily, EventIdentity, EventSpec

PLATFORM = "platform"
COMMAND = "command"


class ResyncData(msgspec.Struct, kw_only=True, frozen=True):
    """STATE was lost and has been filled again: a consumer that keeps data derived from it reads the last values again."""

    reason: str
    """why, in words"""
    resources: list[str] = []
    """whose objects were published again, as `deployments.apps`"""


class CommandResult(msgspec.Struct, kw_only=True, frozen=True):
    """What became of a command; `causationid` of the envelope is the command's id."""

    service: str
    """that was asked"""
    verb: str
    """what it was asked"""
    reason: str = ""
    message: str = ""
    deliveries: Count = 0
    """how often the command was delivered"""


_answer = EventFamily("command", COMMAND, ASKED, CommandResult, EventIdentity.CAUSE)

EVENTS: tuple[EventSpec, ...] = (
    EventFamily("platform", PLATFORM, "watcher", ResyncData)("resync", "STATE was lost and has been filled again."),
    _answer("completed", "A command was carried out."),
    _answer("failed", "A command was refused, or given up after its last delivery."),
)
