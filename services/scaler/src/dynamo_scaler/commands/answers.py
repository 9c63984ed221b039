"""Commands that were answered before, so that a repeated command gets the same answer and does not act twice."""

import msgspec
from dynamo_shared.bus import Bus, streams
from dynamo_shared.bus.commands import Answered, CommandRefusedError
from dynamo_shared.bus.errors import BusError
from dynamo_shared.newest import Newest
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications.platform import COMMAND, CommandResult

COMPLETED, FAILED = "completed", "failed"
#: Answers that are remembered here; EVENTS has all of a week.
_CAPACITY = 2000


class Answers:
    """The answers of one cluster's commands: the latest from memory, others from the stream of events."""

    def __init__(self, bus: Bus, cluster: str) -> None:
        self._bus = bus
        self._cluster = cluster
        #: By namespace and id: ids are of the senders' making, and those of two namespaces may be the same.
        #: An error is kept as its text: it holds the frames that raised it, and they whole graphs.
        self._known: Newest[tuple[str, str], tuple[str, Answered]] = Newest(_CAPACITY)

    def keep(self, namespace: str, command: str, answer: Answered | CommandRefusedError) -> None:
        """A command of a namespace was answered."""
        if isinstance(answer, CommandRefusedError):
            self._known[namespace, command] = FAILED, Answered(answer.reason, str(answer))
        else:
            self._known[namespace, command] = COMPLETED, answer

    async def find(self, namespace: str, command: str) -> Answered | CommandRefusedError | None:
        """The answer that a command was given; None where none is known. While NATS is away only memory is asked."""
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
    """An answer as the command's handler returns or raises it."""
    return answer if event == COMPLETED else CommandRefusedError(*answer)
