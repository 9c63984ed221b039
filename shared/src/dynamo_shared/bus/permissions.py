"""Permissions on the platform's NATS: one user per service, with only the rights that its specifications require.

JetStream has no permissions of its own: its API consists of requests on subjects, so rights are subjects to which a
user may publish and subscribe. What each right allows:

| right | subjects |
|---|---|
| publish to a plane | the subjects that the service publishes according to the specifications |
| read a stream | create a consumer on it, request its messages, read its state |
| read one message | `STREAM.MSG.GET`: the last of a subject, or one sequence number |
| receive commands | its own durable consumers, and acknowledgements on them |
| declare streams | only the watcher creates and changes the four streams |
| answers | subscribe only to its own inbox prefix (`subjects.inbox_prefix`), so that no user reads another one's answers |

NATS cannot express two things (nats-server #3202, #8274): it does not check a consumer's filter against permissions,
and it sends a consumer's messages, and answers, to any subject that their receiver names. So a service that may read a
stream can read all of it, and a stolen credential can put a misplaced message into a stream, or cause an empty answer
to `$JS.API.STREAM.DELETE`. Readers of STATE therefore compare subject, headers and payload, and the watcher compares
STATE with the API server and declares lost streams.
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
"""All services in one process, as `dynamoctl up` runs them, with the rights of all of them."""
CLI_USER = "dynamoctl"
"""Reads events, workers and models, and sends commands."""
EVENT_READER = "integrator"
"""Third-party programs that read EVENTS, and nothing else."""
COMMAND_SENDER = "commander"
"""Third-party programs that send commands and receive the answers to new ones, and nothing else."""
USERS = (*SERVICES, PLATFORM, CLI_USER, EVENT_READER, COMMAND_SENDER)

API = "$JS.API"

_STATE_READERS = frozenset({*SERVICES, CLI_USER})
_EVENT_READERS = frozenset({"scaler", "planner", "dynadmin", CLI_USER, EVENT_READER})
"""Senders of commands wait there for answers; the scaler reads its own earlier answers."""


@dataclass(frozen=True, slots=True)
class SubjectRights:
    """Subjects that a user may publish and subscribe to; a denial overrides a permission."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    publish_denied: tuple[str, ...] = ()


def rights(user: str, cluster: str) -> SubjectRights:
    """The rights of one of `USERS` for one cluster's subjects. Raises ValueError for any other user."""
    if user not in USERS:
        raise ValueError(f"{user} is not a user of the platform's NATS; use one of {', '.join(USERS)}")
    names = SERVICES if user == PLATFORM else (user,)
    publish = sorted({subject for name in names for subject in _publish(name, cluster)})
    events = f"{subjects.EVENT_PREFIX}.{subjects.encode(cluster)}"
    heard = {
        EVENT_READER: f"{events}.>",
        CLI_USER: f"{events}.>",
        COMMAND_SENDER: f"{events}.{subjects.ANY}.{COMMAND}.>",
    }
    denied = _discovered(cluster) if user == WATCHER else ()
    subscribe = (f"{subjects.inbox_prefix(user)}.>", *([heard[user]] if user in heard else []))
    return SubjectRights(tuple(publish), subscribe, tuple(denied))


def _publish(name: str, cluster: str) -> Iterator[str]:
    yield from _messages(name, cluster)
    published: set[StreamSpec] = set()
    if name in (WATCHER, DISCOVERY):
        published.add(streams.STATE)
        # After a wrong sequence these services read the subject's message.
        yield f"{API}.STREAM.MSG.GET.{streams.STATE.name}"
    takes = any(spec.service == name for spec in COMMANDS)
    if takes or any(spec.publisher == name for spec in EVENTS):
        published.add(streams.EVENTS)
    if takes or name == CLI_USER or any(name in spec.senders for spec in COMMANDS):
        published.add(streams.COMMANDS)
    if name in _STATE_READERS:
        yield from _reading(streams.STATE)
    if name in _EVENT_READERS:
        yield from _reading(streams.EVENTS)
    if name == EVENT_READER:
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
    """Subjects of the wire that a user publishes to."""
    token, any_ = subjects.encode(cluster), subjects.ANY
    if name == WATCHER:
        yield f"{subjects.STATE_PREFIX}.{token}.>"
    if name == DISCOVERY:
        yield from _discovered(cluster)
    for event in EVENTS:
        if event.publisher == name or (event.publisher == ASKED and any(spec.service == name for spec in COMMANDS)):
            yield f"{subjects.EVENT_PREFIX}.{token}.{any_}.{event.kind}.{any_}.{event.event}"
    for command in COMMANDS:
        if name in (CLI_USER, COMMAND_SENDER, *command.senders):
            yield f"{subjects.COMMAND_PREFIX}.{token}.{any_}.{command.service}.{command.verb}"
        if name == command.service:
            # A command that cannot be decoded may have any verb.
            yield f"{subjects.DEAD_LETTER_PREFIX}.{token}.{any_}.{command.service}.{any_}"


def _discovered(cluster: str) -> Iterable[str]:
    """Subjects of workers and models, which the watcher may not publish: no API server knows them."""
    return [subjects.state_filter(cluster, resource.id) for resource in (WORKERS, MODELS)]


def _reading(stream: StreamSpec) -> Iterator[str]:
    yield f"{API}.STREAM.INFO.{stream.name}"
    yield f"{API}.CONSUMER.CREATE.{stream.name}"
    yield f"{API}.CONSUMER.MSG.NEXT.{stream.name}.*"


def _named_reading(stream: StreamSpec) -> Iterator[str]:
    """Third-party clients name their consumers, inspect them, acknowledge, and answer the flow control of ordered ones."""
    yield f"{API}.CONSUMER.CREATE.{stream.name}.>"
    yield f"{API}.CONSUMER.DURABLE.CREATE.{stream.name}.*"
    yield f"{API}.CONSUMER.INFO.{stream.name}.*"
    yield f"$JS.ACK.{stream.name}.>"
    yield f"$JS.FC.{stream.name}.>"


def _taking(name: str, cluster: str) -> Iterator[str]:
    """The durable consumers of a service that receives commands."""
    durable = consumer_name(cluster, name)
    for stream, consumer in ((streams.COMMANDS, durable), (streams.DEAD_LETTERS, f"{durable}-lost")):
        yield f"{API}.CONSUMER.CREATE.{stream.name}.{consumer}"
        yield f"{API}.CONSUMER.MSG.NEXT.{stream.name}.{consumer}"
        yield f"$JS.ACK.{stream.name}.{consumer}.>"
    yield f"{API}.STREAM.MSG.GET.{streams.COMMANDS.name}"
    yield f"{API}.STREAM.MSG.DELETE.{streams.COMMANDS.name}"
