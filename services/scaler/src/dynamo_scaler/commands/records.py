"""The last command of a component, stored on the object whose replicas it changed, in the same write.

So if the scaler dies between the write and its answer, the repeated command is known to be done. And cooldowns between
two scalings survive restarts.
"""

from collections.abc import Iterable, Mapping

import msgspec
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import LAST_SCALED
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.wire.specifications.base import Count

#: Number of earlier commands that are remembered: a command is delivered at most five times, and others may come
#: between.
_EARLIER = 7


class ScalingRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The last scaling of one component."""

    #: Unix time.
    at: float
    before: Count
    replicas: Count
    command: str
    requester: str = ""
    #: When the command was sent, by its sender's clock; RFC 3339.
    sent: str = ""
    earlier: list[str] = []

    def includes(self, command: str) -> bool:
        """Whether a command has been carried out on the component."""
        return command == self.command or command in self.earlier


def read(obj: KubeObject | None) -> dict[str, ScalingRecord]:
    """Records of an object by component; empty if the annotation is invalid."""
    return json_text.annotated(obj, LAST_SCALED, dict[str, ScalingRecord]) if obj is not None else {}


def latest(objects: Iterable[KubeObject | None], component: str) -> ScalingRecord | None:
    """The last scaling of a component, from the graph or its adapter: whichever owned the replicas then has it."""
    candidates = [record for obj in objects if (record := read(obj).get(component)) is not None]
    return max(candidates, key=lambda record: record.at, default=None)


def following(previous: ScalingRecord | None, record: ScalingRecord) -> ScalingRecord:
    """A record that includes the previous commands."""
    if previous is None:
        return record
    earlier = [each for each in (previous.command, *previous.earlier) if each != record.command]
    return msgspec.structs.replace(record, earlier=earlier[:_EARLIER])


def written(records: Mapping[str, ScalingRecord]) -> str:
    """The annotation's text."""
    return msgspec.json.encode(dict(sorted(records.items()))).decode()
