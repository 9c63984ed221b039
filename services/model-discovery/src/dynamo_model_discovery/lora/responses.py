"""Reads responses of workers, which are not trusted: a response is either a listing or an error message."""

from typing import Any

from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import ReadLimits
from dynamo_shared.api.untrusted.words import quoted

from dynamo_model_discovery.workers import metadata
from dynamo_model_discovery.workers.cards import text
from dynamo_model_discovery.workers.records import CardRecord

#: Length limit of a worker's message in status, Events and logs. Characters.
MESSAGE_LIMIT = 300
#: Limits of a response, which has a few bytes for each adapter.
_RESPONSE = ReadLimits(1 << 20, 20_000, 16)
#: Worker types that do not serve requests of clients.
_WITHOUT_ADAPTERS = ("prefill", "encode")


class LoraError(Exception):
    """A request to a worker failed or got no valid response. The message is for users; the request is retried."""

    def __init__(self, message: str, *, outcome: str = "error", unanswered: bool = False) -> None:
        super().__init__(message)
        self.outcome = outcome
        """a label value for metrics"""
        self.unanswered = unanswered
        """whether the worker may still carry out the request: it was sent, but no complete response arrived"""


def names_in(content: bytes) -> frozenset[str] | None:
    """Adapters or models in a listing; None if the content is not a listing.

    Dynamo's workers send `{"loras": {name: id}}`; lists of names or of objects and OpenAI's `{"data": [{"id": ...}]}`
    are accepted, too. A negative id is a placeholder of an adapter that is still loading.
    """
    if is_refusal(content):
        return None
    listing = _json(content)
    if isinstance(listing, dict):
        listing = listing["loras"] if "loras" in listing else listing.get("data")
    if isinstance(listing, dict):
        return frozenset(name for name, id_ in listing.items() if not (isinstance(id_, int) and id_ < 0))
    if isinstance(listing, list):
        return frozenset(name for each in listing if (name := _name(each)))
    return None


def is_published(name: str, content: bytes) -> bool:
    """Whether a worker's registration has a model card of an adapter; True if this worker does not publish adapters.

    In some releases only decode workers publish adapters, not prefill workers. Also True if a card is unreadable or has
    no readable name, because it may be the adapter's.
    """
    registered = metadata.read({"spec": {"data": _json(content)}})
    cards = [each.card for each in registered.records if isinstance(each, CardRecord) and each.card is not None]
    serves = any(not card.lora and card.worker_type not in _WITHOUT_ADAPTERS for card in cards)
    unsure = registered.unreadable or text(name) != name
    return bool(not serves or unsure or any(card.name == name for card in cards))


def complaint(content: bytes) -> str:
    """The error message of a response, as one short line without credentials; empty without a message."""
    response = _json(content)
    message: Any = response
    if isinstance(response, dict):
        message = next((response[key] for key in ("message", "error", "detail") if response.get(key)), "")
        if isinstance(message, dict):
            message = message.get("message", "")
    elif response is None:
        # The last character may be incomplete.
        message = content[: 4 * MESSAGE_LIMIT].decode(errors="ignore") if _is_text(content) else ""
    return quoted(str(message), MESSAGE_LIMIT)


def is_refusal(content: bytes) -> bool:
    """Whether the content of a response reports an error, even if its HTTP status is 2xx."""
    response = _json(content)
    return isinstance(response, dict) and response.get("status") == "error"


def _is_text(content: bytes) -> bool:
    return "\ufffd" not in content[: 4 * MESSAGE_LIMIT].decode(errors="replace")[:-1]


def _name(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    if isinstance(entry, dict):
        name = next((entry[key] for key in ("lora_name", "name", "id") if entry.get(key)), "")
        return name if isinstance(name, str) else ""
    return ""


def _json(content: bytes) -> Any:
    try:
        return json_text.decode(content, _RESPONSE)
    except json_text.InvalidJson:
        return None
