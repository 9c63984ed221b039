"""Events about the platform itself, and the answers to commands."""

import msgspec

from dynamo_shared.wire.specifications.base import ASKED, Count, EventFamily, EventIdentity, EventSpec

PLATFORM = "platform"
COMMAND = "command"


class ResyncData(msgspec.Struct, kw_only=True, frozen=True):
    """STATE was lost and has been filled again: a consumer with data derived from it reads the last messages again."""

    reason: str
    """why, as text"""
    resources: list[str] = []
    """resources whose objects were published again, such as `deployments.apps`"""


class CommandResult(msgspec.Struct, kw_only=True, frozen=True):
    """Result of a command; the envelope's `causationid` is the command's id."""

    service: str
    """service that received it"""
    verb: str
    """verb of the command"""
    reason: str = ""
    message: str = ""
    deliveries: Count = 0
    """how many times the command was delivered"""


_answer = EventFamily("command", COMMAND, ASKED, CommandResult, EventIdentity.CAUSE)

EVENTS: tuple[EventSpec, ...] = (
    EventFamily("platform", PLATFORM, "watcher", ResyncData)("resync", "STATE was lost and has been published again."),
    _answer("completed", "A command was executed."),
    _answer("failed", "A command was refused, or failed at its last delivery."),
)
