"""Who may do what on the platform's NATS: one user for each service, with the least that it needs, from the specifications.

JetStream has no permissions of its own: its API is requests on subjects, so rights are subjects that a user may publish
and subscribe to. What each right allows:

| right | subjects |
|---|---|
| publish to a plane | the subjects of what the specifications say the service publishes |
| read a stream | create a consumer on it, ask it for messages, ask how the stream is |
| read one message | `STREAM.MSG.GET`: the last of a subject, or one sequence number |
| take commands | its own durable consumers, and acknowledgements on them |
| declare streams | the watcher alone creates and changes the four streams |
| answers | subscribe to its own inbox prefix only (`subjects.inbox_prefix`), so that no user reads another one's answers |

Two things NATS cannot express (nats-server #3202, #8274): a consumer's filter is not checked against permissions, and the
server sends a consumer's messages, and answers, to whatever subject their receiver names. So a service that may read a
stream reads all of it, and a stolen credential can put a misplaced message into a stream, or have an empty answer sent to
`$JS.API.STREAM.DELETE`. Readers of STATE therefore hold subject, headers and payload against each other, and the watcher
holds STATE against the API server and declares streams that are gone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dynamo_shared.bus import streams
from dynamo_shared.bus.commands import consumer_name
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.wire import subjects
from dynamo_shared.wire.discovered import MODELS, WORKERS
from dynamo_shared.wire.specifications import COMMANDS, EVENTS
from dynamo_shared.wire.specifications.base import ASKED
from dynamo_shared.wire.specifications.platform import COMMAND

WATCHER = "watcher"
DISCOVERY = "model-discovery"
SERVICES = (WATCHER, "pod-builder", "scaler", DISCOVERY, "profiler", "planner", "dynadmin", "image-builder")
PLATFORM = "platform"
"""All services in one process, as `dynamoctl up` runs them: the rights of each of them."""
PEOPLE = "dynamoctl"
"""Reads events, workers and models, and sends commands."""
INTEGRATOR = "integrator"
"""Programs of others: read EVENTS, and nothing else."""
COMMANDER = "commander"
"""Programs of others: send commands and hear the answers as they come, and nothing else."""
USERS = (*SERVICES, PLATFORM, PEOPLE, INTEGRATOR, COMMANDER)

API = "$JS.API"

_STATE_READERS = frozenset({*SERVICES, PEOPLE})
_EVENT_READERS = frozenset({"scaler", "planner", "dynadmin", PEOPLE, INTEGRATOR})
"""Senders of commands wait for answers there; the scaler looks up the answers that it gave."""


@dataclass(frozen=True, slots=True)
class SubjectRights:
    """Subjects that a user may publish and subscribe to; what is denied wins over what is allowed."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    publish_denied: tuple[str, ...] = ()


def rights(user: str, cluster: str) -> SubjectRights:
    """Rights of one of `USERS` for one cluster's subjects. ValueError for any other user."""
    if user not in USERS:
        raise ValueError(f"{user} is not a user of the platform's NATS; there are {', '.join(USERS)}")
    names = SERVICES if user == PLATFORM else (user,)
    publish = sorted({subject for name in names for subject in _publish(name, cluster)})
    events = f"{subjects.EVENT_PREFIX}.{subjects.encode(cluster)}"
    heard = {INTEGRATOR: f"{events}.>", PEOPLE: f"{events}.>", COMMANDER: f"{events}.{subjects.ANY}.{COMMAND}.>"}
    denied = _discovered(cluster) if user == WATCHER else ()
    subscribe = (f"{subjects.inbox_prefix(user)}.>", *([heard[user]] if user in heard else []))
    return SubjectRights(tuple(publish), subscribe, tuple(denied))


def _publish(name: str, cluster: str) -> Iterator[str]:
    yield from _messages(name, cluster)
    published: set[StreamSpec] = set()
    if name in (WATCHER, DISCOVERY):
        published.add(streams.STATE)
        # After a wrong sequence they read what the subject has.
        yield f"{API}.STREAM.MSG.GET.{streams.STATE.name}"
    takes = any(spec.service == name for spec in COMMANDS)
    if takes or any(spec.publisher == name for spec in EVENTS):
        published.add(streams.EVENTS)
    if takes or name == PEOPLE or any(name in spec.senders for spec in COMMANDS):
        published.add(streams.COMMANDS)
    if name in _STATE_READERS:
        yield from _reading(streams.STATE)
    if name in _EVENT_READERS:
        yield from _reading(streams.EVENTS)
    if name == INTEGRATOR:
        yield from _named_reading(streams.EVENTS)
    if takes:
        published.add(streams.DEAD_LETTERS)
        yield f"{API}.STREAM.MSG.GET.{streams.EVENTS.name}"
        yield from _taking(name, cluster)
    for stream in streams.ALL if name == WATCHER else published:
        yield f"{API}.STREAM.INFO.{stream.name}"
        if name == WATCHER:
            yield f"{API}.STREAM.CREATE.{stream.name}"
            yield f"{API}.STREAM.UPDATE.{stream.name}"


def _messages(name: str, cluster: str) -> Iterator[str]:
    """What a user publishes on the wire's own subjects."""
    token, any_ = subjects.encode(cluster), subjects.ANY
    if name == WATCHER:
        yield f"{subjects.STATE_PREFIX}.{token}.>"
    if name == DISCOVERY:
        yield from _discovered(cluster)
    for event in EVENTS:
        if event.publisher == name or (event.publisher == ASKED and any(spec.service == name for spec in COMMANDS)):
            yield f"{subjects.EVENT_PREFIX}.{token}.{any_}.{event.kind}.{any_}.{event.event}"
    for command in COMMANDS:
        if name in (PEOPLE, COMMANDER, *command.senders):
            yield f"{subjects.COMMAND_PREFIX}.{token}.{any_}.{command.service}.{command.verb}"
        if name == command.service:
            # What cannot be read has any verb.
            yield f"{subjects.DEAD_LETTER_PREFIX}.{token}.{any_}.{command.service}.{any_}"


def _discovered(cluster: str) -> Iterable[str]:
    """Workers and models, which are not the watcher's to publish: no API server knows them."""
    return [subjects.state_filter(cluster, resource.id) for resource in (WORKERS, MODELS)]


def _reading(stream: StreamSpec) -> Iterator[str]:
    yield f"{API}.STREAM.INFO.{stream.name}"
    yield f"{API}.CONSUMER.CREATE.{stream.name}"
    yield f"{API}.CONSUMER.MSG.NEXT.{stream.name}.*"


def _named_reading(stream: StreamSpec) -> Iterator[str]:
    """Clients of others name their consumers, inspect them, acknowledge, and answer the flow control of ordered ones."""
    yield f"{API}.CONSUMER.CREATE.{stream.name}.>"
    yield f"{API}.CONSUMER.DURABLE.CREATE.{stream.name}.*"
    yield f"{API}.CONSUMER.INFO.{stream.name}.*"
    yield f"$JS.ACK.{stream.name}.>"
    yield f"$JS.FC.{stream.name}.>"


def _taking(name: str, cluster: str) -> Iterator[str]:
    """The durable consumers of a service that takes commands."""
    durable = consumer_name(cluster, name)
    for stream, consumer in ((streams.COMMANDS, durable), (streams.DEAD_LETTERS, f"{durable}-lost")):
        yield f"{API}.CONSUMER.CREATE.{stream.name}.{consumer}"
        yield f"{API}.CONSUMER.MSG.NEXT.{stream.name}.{consumer}"
        yield f"$JS.ACK.{stream.name}.{consumer}.>"
    yield f"{API}.STREAM.MSG.GET.{streams.COMMANDS.name}"
    yield f"{API}.STREAM.MSG.DELETE.{streams.COMMANDS.name}"
