"""Reads answers of workers, which are not trusted: an answer is either a listing or an error message."""

from typing import Any

from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import ReadLimits
from dynamo_shared.api.untrusted.words import quoted

from dynamo_model_discovery.workers import metadata
from dynamo_model_discovery.workers.cards import text
from dynamo_model_discovery.workers.records import CardRecord

#: Length limit of a worker's message in status, Events and logs. Characters.
MESSAGE_LIMIT = 300
#: Limits of a listing, which has a few bytes for each adapter.
_ANSWER = ReadLimits(1 << 20, 20_000, 16)
#: Worker types that do not serve requests themselves.
_WITHOUT_ADAPTERS = ("prefill", "encode")


class LoraError(Exception):
    """A request to a worker failed or got no valid answer; the message is for people. The request is retried."""

    def __init__(self, message: str, *, outcome: str = "error", unanswered: bool = False) -> None:
        super().__init__(message)
        self.outcome = outcome
        """in a word, for metrics"""
        self.unanswered = unanswered
        """whether the worker may do it yet: it got the request, and its answer did not come"""


def names_in(content: bytes) -> frozenset[str] | None:
    """Adapters or models in a listing; None if the content is not a listing.

    Dynamo's workers answer `{"loras": {name: id}}`; lists of names or of objects and OpenAI's `{"data": [{"id": ...}]}`
    are accepted, too. A negative id is a placeholder of an adapter that is still loading.
    """
    answer = _json(content)
    if isinstance(answer, dict):
        if answer.get("status") == "error":
            return None
        answer = answer["loras"] if "loras" in answer else answer.get("data")
    if isinstance(answer, dict):
        return frozenset(name for name, id_ in answer.items() if not (isinstance(id_, int) and id_ < 0))
    if isinstance(answer, list):
        return frozenset(name for each in answer if (name := _name(each)))
    return None


def is_published(name: str, content: bytes) -> bool:
    """Whether a worker's registration has a model card of an adapter; True if this worker does not publish adapters.

    In some releases prefill workers publish no adapters; decode workers do. An unreadable card, or a card without a
    readable name, may be the adapter's.
    """
    registered = metadata.read({"spec": {"data": _json(content)}})
    cards = [each.card for each in registered.records if isinstance(each, CardRecord) and each.card is not None]
    serves = any(not card.lora and card.worker_type not in _WITHOUT_ADAPTERS for card in cards)
    unsure = registered.unreadable or text(name) != name
    return bool(not serves or unsure or any(card.name == name for card in cards))


def complaint(content: bytes) -> str:
    """The error message of an answer, as one short line without credentials; empty if there is none."""
    answer = _json(content)
    message: Any = answer
    if isinstance(answer, dict):
        message = next((answer[key] for key in ("message", "error", "detail") if answer.get(key)), "")
        if isinstance(message, dict):
            message = message.get("message", "")
    elif answer is None:
        # Ignore bytes that are not text; the last character may be cut.
        message = content[: 4 * MESSAGE_LIMIT].decode(errors="ignore") if _is_text(content) else ""
    return one_line(str(message))


def is_refusal(content: bytes) -> bool:
    """Whether an answer with status 2xx is an error nevertheless."""
    answer = _json(content)
    return isinstance(answer, dict) and answer.get("status") == "error"


def one_line(text: str) -> str:
    """An untrusted text in a printable form: one short line, without credentials and signed queries."""
    return quoted(text, MESSAGE_LIMIT)


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
        return json_text.decode(content, _ANSWER)
    except json_text.InvalidJson:
        return None
