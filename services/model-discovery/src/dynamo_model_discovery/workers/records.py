"""Dynamo's discovery records: reads the registrations of processes from keys and values. Pure.

Releases differ in their layout: separators, encoding, position of the id, names of transports and fields. Unknown parts
are ignored, unreadable parts are reported, and neither affects other records. The key identifies the process; the value
is used only if the key lacks a part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

import msgspec
from dynamo_shared.wire.discovered import ModelCard

from dynamo_model_discovery.workers.cards import MAX_NAME_LENGTH, card_of, fits, text

INSTANCES = "instances"
CARDS = "mdc"
#: Size limit of a value. Cards have 2 to 4 KiB; a much larger value is not a record. Bytes.
MAX_VALUE_BYTES = 256 * 1024
_ID_LIMIT = 2**64


class UnreadableError(ValueError):
    """A record whose process cannot be identified."""


class EndpointIdentity(NamedTuple):
    """The process and the endpoint of a record."""

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
    """A record that a process can be called at an endpoint. `damaged`: the key is readable, but the value is not."""

    identity: EndpointIdentity
    transport: str = ""
    address: str = ""
    device_type: str = ""
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class CardRecord:
    """A record that a process serves a model at an endpoint. `card` is None if the value is unreadable."""

    identity: EndpointIdentity
    card: ModelCard | None

    @property
    def damaged(self) -> bool:
        """Whether the value is unreadable."""
        return self.card is None


Record: TypeAlias = EndpointRecord | CardRecord

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def parse(key: str, value: bytes) -> Record | None:
    """The record of a key in etcd's form (`v1/instances/...`, `v1/mdc/...`); None for other kinds of keys.

    Raises UnreadableError if the key is of a known kind, but does not identify a process.
    """
    kind, _, rest = key.removeprefix("v1/").partition("/")
    if kind not in (INSTANCES, CARDS):
        return None
    identity, suffix = _identity_in(rest)
    try:
        content = _decode(value) if 0 < len(value) <= MAX_VALUE_BYTES else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        content = None
    if kind == INSTANCES:
        return EndpointRecord(identity, damaged=True) if content is None else endpoint(content, identity)
    return CardRecord(identity, None) if content is None else model(content, identity, suffix)


def endpoint(content: Mapping[str, Any], identity: EndpointIdentity) -> EndpointRecord:
    """The record of a value that registers an endpoint."""
    transport, address = _transport(content.get("transport"))
    return EndpointRecord(identity, transport, address, text(content.get("device_type"), 64))


def model(content: Mapping[str, Any], identity: EndpointIdentity, suffix: str = "") -> CardRecord:
    """The record of a value that registers a model; `suffix` is the key's last part, the name of an adapter."""
    # In DynamoWorkerMetadata the key is a field that a tenant may write, so the suffix is not validated yet.
    return CardRecord(identity, card_of(content.get("card_json"), text(suffix) or text(content.get("model_suffix"))))


def identity_of(content: Mapping[str, Any]) -> EndpointIdentity:
    """The identity in the fields of a value. Raises UnreadableError if a field is missing or invalid."""
    names = [text(content.get(field)) for field in ("namespace", "component", "endpoint")]
    number = content.get("instance_id")
    if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) <= len(str(_ID_LIMIT)):
        number = int(number)
    if not all(names) or not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < _ID_LIMIT:
        raise UnreadableError("namespace, component, endpoint or instance_id is missing")
    return EndpointIdentity(names[0], names[1], names[2], number)


def _identity_in(path: str) -> tuple[EndpointIdentity, str]:
    """Identity and suffix of `<namespace>/<component>/<endpoint>/<hex id>[/<suffix>]`, or `.../<endpoint>:<hex id>`."""
    parts = path.split("/")
    if len(parts) == 3 and ":" in parts[2]:
        parts[2:] = parts[2].rsplit(":", 1)
    names = [unquote(part) for part in parts]
    if len(names) not in (4, 5) or not all(map(_is_name, names)):
        raise UnreadableError("not <namespace>/<component>/<endpoint>/<id>")
    try:
        # int() accepts signs, spaces and underscores, which are not valid in an id.
        number = int(names[3], 16) if names[3].isascii() and names[3].isalnum() else -1
    except ValueError:
        number = -1
    if not 0 <= number < _ID_LIMIT:
        raise UnreadableError(f"{names[3][:40]!r} is not a valid instance id")
    return EndpointIdentity(names[0], names[1], names[2], number), names[4] if len(names) == 5 else ""


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME_LENGTH and name.isprintable() and fits(name)


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
