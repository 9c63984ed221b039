"""The subjects of the wire, built and parsed in one place.

| plane | subject |
|---|---|
| state | `dynamo.state.v1.<cluster>.<resource>.<namespace or _>.<name>` |
| state, marker | `dynamo.state.v1.<cluster>.<resource>._synced`: one token fewer than an object's subject, so never an object |
| events | `dynamo.evt.v1.<cluster>.<namespace or _>.<kind>.<name>.<event>` |
| commands | `dynamo.cmd.v1.<cluster>.<namespace or _>.<service>.<verb>` |
| dead letters | `dynamo.dlq.v1.<cluster>.<namespace or _>.<service>.<verb>` |

Tokens are percent-encoded: every character except ASCII letters, digits, `-` and `_` becomes `%XX` for each of its
UTF-8 bytes. This includes the dot, because names may contain dots and NATS splits subjects at them. `v1` is a token so
that a v2 can run next to it.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

from dynamo_shared.api.resources import ObjectKey

STATE_PREFIX = "dynamo.state.v1"
EVENT_PREFIX = "dynamo.evt.v1"
COMMAND_PREFIX = "dynamo.cmd.v1"
DEAD_LETTER_PREFIX = "dynamo.dlq.v1"

NO_NAMESPACE = "_"
"""Stands for "no namespace"; Kubernetes names cannot begin with an underscore, so it is never a namespace."""

SYNCED = "_synced"
_SYNCED_END = f".{SYNCED}"

ANY = "*"
REST = ">"


class StateSubject(NamedTuple):
    """The object of a STATE subject."""

    cluster: str
    resource_id: str
    key: ObjectKey


class EventSubject(NamedTuple):
    """The object of an EVENTS subject, and the event."""

    cluster: str
    namespace: str
    kind: str
    name: str
    event: str


class CommandSubject(NamedTuple):
    """Service, verb and namespace of a COMMANDS or dead letter subject."""

    cluster: str
    namespace: str
    service: str
    verb: str


def encode(token: str) -> str:
    """Percent-encode one token of a subject; ValueError if it is empty, because NATS accepts no empty tokens."""
    # Most tokens are different names: a cache of them would have to be large.
    if _PLAIN(token):
        return token
    return _encode(token)


def decode(token: str) -> str:
    """Decode a token of `encode`."""
    return _decode(token) if "%" in token else token


@lru_cache(maxsize=256)
def _encode(token: str) -> str:
    if not token:
        raise ValueError("a token of a subject must not be empty")
    return quote(token, safe="").replace(".", "%2E").replace("~", "%7E")


_PLAIN = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_decode = lru_cache(maxsize=256)(unquote)


def _namespace(namespace: str) -> str:
    return encode(namespace) if namespace else NO_NAMESPACE


def _plain_namespace(token: str) -> str:
    return "" if token == NO_NAMESPACE else decode(token)


def state_subject(cluster: str, resource_id: str, key: ObjectKey) -> str:
    """Subject of one object, for a resource id such as `deployments.apps`."""
    return f"{STATE_PREFIX}.{encode(cluster)}.{encode(resource_id)}.{_namespace(key.namespace)}.{encode(key.name)}"


def synced_subject(cluster: str, resource_id: str) -> str:
    """Subject of the marker that states that STATE has all objects of this resource."""
    return f"{STATE_PREFIX}.{encode(cluster)}.{encode(resource_id)}.{SYNCED}"


def state_filter(cluster: str, resource_id: str) -> str:
    """Filter for every object of a resource and its marker."""
    return f"{STATE_PREFIX}.{encode(cluster)}.{encode(resource_id)}.{REST}"


def event_subject(cluster: str, namespace: str, kind: str, name: str, event: str) -> str:
    """Subject of an event; the kind is written in lower case."""
    tokens = (encode(cluster), _namespace(namespace), encode(kind.lower()), encode(name), encode(event))
    return ".".join((EVENT_PREFIX, *tokens))


def event_filter(
    cluster: str,
    *,
    namespace: str | None = None,
    kind: str | None = None,
    name: str | None = None,
    event: str | None = None,
) -> str:
    """Filter for events; None matches all."""
    tokens = [
        ANY if namespace is None else _namespace(namespace),
        ANY if kind is None else encode(kind.lower()),
        ANY if name is None else encode(name),
        ANY if event is None else encode(event),
    ]
    return ".".join([EVENT_PREFIX, encode(cluster), *tokens])


def command_subject(cluster: str, namespace: str, service: str, verb: str) -> str:
    """Subject of a command to a service."""
    return f"{COMMAND_PREFIX}.{encode(cluster)}.{_namespace(namespace)}.{encode(service)}.{encode(verb)}"


def command_filter(cluster: str, service: str) -> str:
    """Filter for every command to a service, in all namespaces."""
    return f"{COMMAND_PREFIX}.{encode(cluster)}.{ANY}.{encode(service)}.{ANY}"


def inbox_prefix(user: str) -> str:
    """Subject prefix of a NATS user's answers: no other user may subscribe to it."""
    return f"_INBOX_{encode(user)}"


def dead_letter_subject(command: str) -> str:
    """Subject of a command that could not be executed: the same subject on the dead letter plane."""
    if not command.startswith(f"{COMMAND_PREFIX}."):
        raise ValueError(f"not a command subject: {command}")
    return f"{DEAD_LETTER_PREFIX}{command.removeprefix(COMMAND_PREFIX)}"


def _tokens(subject: str, prefix: str, count: int) -> list[str]:
    head, _, rest = subject.partition(f"{prefix}.")
    tokens = rest.split(".")
    if head or len(tokens) != count or not all(tokens):
        raise ValueError(f"not a {prefix} subject: {subject}")
    return tokens


def parse_state(subject: str) -> StateSubject:
    """The object of a STATE subject; ValueError for any other subject, including a marker's."""
    cluster, resource, namespace, name = _tokens(subject, STATE_PREFIX, 4)
    return StateSubject(decode(cluster), decode(resource), ObjectKey(_plain_namespace(namespace), decode(name)))


def parse_synced(subject: str) -> tuple[str, str] | None:
    """Cluster and resource id of a marker subject, None for any other subject."""
    if not subject.endswith(_SYNCED_END):
        return None
    tokens = subject.removeprefix(f"{STATE_PREFIX}.").split(".")
    if len(tokens) != 3 or tokens[2] != SYNCED:
        return None
    return decode(tokens[0]), decode(tokens[1])


def parse_event(subject: str) -> EventSubject:
    """Parse an EVENTS subject; ValueError for any other subject."""
    cluster, namespace, kind, name, event = _tokens(subject, EVENT_PREFIX, 5)
    return EventSubject(decode(cluster), _plain_namespace(namespace), decode(kind), decode(name), decode(event))


def parse_command(subject: str) -> CommandSubject:
    """Parse a COMMANDS or dead letter subject; ValueError for any other subject."""
    prefix = DEAD_LETTER_PREFIX if subject.startswith(f"{DEAD_LETTER_PREFIX}.") else COMMAND_PREFIX
    cluster, namespace, service, verb = _tokens(subject, prefix, 4)
    return CommandSubject(decode(cluster), _plain_namespace(namespace), decode(service), decode(verb))
