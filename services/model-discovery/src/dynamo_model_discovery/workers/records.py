"""Dynamo's discovery records: what a process registers of itself, read from their keys and values. Pure.

Their layout is not stable, and has changed: separators, encoding, where the id stands, the names of transports
and of fields. What is not understood is left out, what cannot be read is said so, and neither stops the reading of the
others. A key says who registered; its value is believed only where the key lacks something.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

import msgspec
from dynamo_shared.wire.discovered import ModelCard

from dynamo_model_discovery.workers.cards import LONGEST_NAME, card_of, fits, text

INSTANCES = "instances"
CARDS = "mdc"
#: Bytes of a value that are read. Cards take two to four KiB; what is far larger is not a record.
LARGEST_VALUE = 256 * 1024
_ID_LIMIT = 2**64


class UnreadableError(ValueError):
    """A record whose key does not even identify its process."""


class EndpointIdentity(NamedTuple):
    """Which endpoint of which process a record is about."""

    namespace: str
    component: str
    endpoint: str
    instance: int

    @property
    def worker(self) -> str:
        """The process's name: `<namespace>/<component>/<id in hex>`."""
        return f"{self.namespace}/{self.component}/{self.instance:x}"


@dataclass(frozen=True, slots=True)
class EndpointRecord:
    """A process can be called at an endpoint. `damaged`: the key says so, and the value could not be read."""

    identity: EndpointIdentity
    transport: str = ""
    address: str = ""
    device_type: str = ""
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class CardRecord:
    """A process serves a model at an endpoint. `card` is None where the value could not be read."""

    identity: EndpointIdentity
    card: ModelCard | None

    @property
    def damaged(self) -> bool:
        """Whether there is a model whose name is unknown."""
        return self.card is None


Record: TypeAlias = EndpointRecord | CardRecord

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def parse(key: str, value: bytes) -> Record | None:
    """The record of a key, None for one of another kind. `key` is as etcd has it: `v1/instances/...`, `v1/mdc/...`.

    UnreadableError where the key is of a kind that we read, and says nothing that we understand.
    """
    kind, _, rest = key.removeprefix("v1/").partition("/")
    if kind not in (INSTANCES, CARDS):
        return None
    identity, suffix = _identity_in(rest)
    try:
        content = _decode(value) if 0 < len(value) <= LARGEST_VALUE else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        content = None
    if kind == INSTANCES:
        return EndpointRecord(identity, damaged=True) if content is None else endpoint(content, identity)
    return CardRecord(identity, None) if content is None else model(content, identity, suffix)


def endpoint(content: Mapping[str, Any], identity: EndpointIdentity) -> EndpointRecord:
    """The endpoint that a value describes."""
    transport, address = _transport(content.get("transport"))
    return EndpointRecord(identity, transport, address, text(content.get("device_type"), 64))


def model(content: Mapping[str, Any], identity: EndpointIdentity, suffix: str = "") -> CardRecord:
    """The model that a value describes; `suffix` is the key's last part, the name of an adapter."""
    # Where the key is a tenant's field, and not one of etcd's, nothing has read the suffix yet.
    return CardRecord(identity, card_of(content.get("card_json"), text(suffix) or text(content.get("model_suffix"))))


def identity_of(content: Mapping[str, Any]) -> EndpointIdentity:
    """The identity by a value's own fields, for keys without one; UnreadableError where the fields lack it, too."""
    names = [text(content.get(field)) for field in ("namespace", "component", "endpoint")]
    number = content.get("instance_id")
    if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) <= len(str(_ID_LIMIT)):
        number = int(number)
    if not all(names) or not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < _ID_LIMIT:
        raise UnreadableError("namespace, component, endpoint and instance_id are not all there")
    return EndpointIdentity(names[0], names[1], names[2], number)


def _identity_in(path: str) -> tuple[EndpointIdentity, str]:
    """EndpointIdentity and suffix in `<namespace>/<component>/<endpoint>/<hex id>[/<suffix>]`, or `.../<endpoint>:<hex id>`."""
    parts = path.split("/")
    if len(parts) == 3 and ":" in parts[2]:
        parts[2:] = parts[2].rsplit(":", 1)
    names = [unquote(part) for part in parts]
    if len(names) not in (4, 5) or not all(map(_is_name, names)):
        raise UnreadableError("not <namespace>/<component>/<endpoint>/<id>")
    try:
        # int() takes signs, spaces and underscores, which no id has.
        number = int(names[3], 16) if names[3].isascii() and names[3].isalnum() else -1
    except ValueError:
        number = -1
    if not 0 <= number < _ID_LIMIT:
        raise UnreadableError(f"{names[3][:40]!r} is not a valid instance id")
    return EndpointIdentity(names[0], names[1], names[2], number), names[4] if len(names) == 5 else ""


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and fits(name)


def _transport(value: Any) -> tuple[str, str]:
    """Name and address of `{"tcp": "host:port/..."}`; `nats_tcp`, `Nats` and `NatsTcp` are the same."""
    if isinstance(value, str):
        return text(value, 32).lower(), ""
    if not isinstance(value, dict) or len(value) != 1:
        return "", ""
    name, address = next(iter(value.items()))
    name = text(name, 32).lower()
    if isinstance(address, dict):
        address = next((each for each in address.values() if isinstance(each, str)), "")
    return "nats" if name.startswith("nats") else name, text(address, 1024)
