"""Answers of earlier commands, so that a repeated command gets the same answer and has no second effect."""

import msgspec
from dynamo_shared.bus import Bus, streams
from dynamo_shared.bus.commands import Answered, CommandRefusedError
from dynamo_shared.bus.errors import BusError
from dynamo_shared.lru import LruCache
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications.platform import COMMAND, CommandResult

COMPLETED, FAILED = "completed", "failed"
#: Number of answers in memory; EVENTS has the answers of a week.
_CAPACITY = 2000


class Answers:
    """The answers of one cluster's commands: the latest from memory, others from the stream of events."""

    def __init__(self, bus: Bus, cluster: str) -> None:
        self._bus = bus
        self._cluster = cluster
        #: By namespace and id: senders choose ids, and two namespaces may use the same. An error is stored as its text,
        #: because an exception keeps its frames, which keep whole graphs.
        self._known: LruCache[tuple[str, str], tuple[str, Answered]] = LruCache(_CAPACITY)

    def keep(self, namespace: str, command: str, answer: Answered | CommandRefusedError) -> None:
        """Remember the answer of a command."""
        if isinstance(answer, CommandRefusedError):
            self._known[namespace, command] = FAILED, Answered(answer.reason, str(answer))
        else:
            self._known[namespace, command] = COMPLETED, answer

    async def find(self, namespace: str, command: str) -> Answered | CommandRefusedError | None:
        """The earlier answer of a command; None if unknown. While NATS is down, only memory is used."""
        if (namespace, command) in self._known:
            return _as_given(*self._known[namespace, command])
        for event in (COMPLETED, FAILED):
            subject = subjects.event_subject(self._cluster, namespace, COMMAND, command, event)
            try:
                message = await self._bus.last_message(streams.EVENTS, subject)
            except BusError:
                # The record in Kubernetes is read in any case.
                return None
            if message is not None:
                result = msgspec.convert(cloudevents.decode(message.payload).data, CommandResult)
                return _as_given(event, Answered(result.reason, result.message))
        return None


def _as_given(event: str, answer: Answered) -> Answered | CommandRefusedError:
    """An answer in the form that the command's handler returns or raises."""
    return answer if event == COMPLETED else CommandRefusedError(*answer)
