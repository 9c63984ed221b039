"""Reads answers of workers. They are not trusted: an answer is a listing, or the reason why it is not."""

from typing import Any

from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import ReadLimits
from dynamo_shared.api.untrusted.words import quoted

from dynamo_model_discovery.workers import metadata
from dynamo_model_discovery.workers.cards import text
from dynamo_model_discovery.workers.records import CardRecord

#: Characters of a worker's message that are repeated in status, Events and logs.
MESSAGE_LIMIT = 300
#: A listing has a few bytes for each adapter.
_ANSWER = ReadLimits(1 << 20, 20_000, 16)
#: Worker types that serve no request by themselves.
_WITHOUT_ADAPTERS = ("prefill", "encode")


class LoraError(Exception):
    """A worker did not do, or did not say, what it was asked; the message is for people. It is tried again."""

    def __init__(self, message: str, *, outcome: str = "error", unanswered: bool = False) -> None:
        super().__init__(message)
        self.outcome = outcome
        """in a word, for metrics"""
        self.unanswered = unanswered
        """whether the worker may do it yet: it got the request, and its answer did not come"""


def names_in(content: bytes) -> frozenset[str] | None:
    """Adapters or models that a listing names; None where it is not a listing.

    Dynamo's workers answer `{"loras": {name: id}}`; lists of names or of objects and OpenAI's `{"data": [{"id": ...}]}` are
    read as well. An id below zero is a place kept for an adapter that is still being loaded.
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
    """Whether what a worker has registered has a model card of an adapter; True where that is not for it to say.

    Prefill workers of some releases publish no adapters: decode workers do. A card that cannot be read, or not with this name,
    may be the adapter's.
    """
    registered = metadata.read({"spec": {"data": _json(content)}})
    cards = [each.card for each in registered.records if isinstance(each, CardRecord) and each.card is not None]
    serves = any(not card.lora and card.worker_type not in _WITHOUT_ADAPTERS for card in cards)
    unsure = registered.unreadable or text(name) != name
    return bool(not serves or unsure or any(card.name == name for card in cards))


def complaint(content: bytes) -> str:
    """What an answer says went wrong, as one short line without credentials; empty where it says nothing."""
    answer = _json(content)
    said: Any = answer
    if isinstance(answer, dict):
        said = next((answer[key] for key in ("message", "error", "detail") if answer.get(key)), "")
        if isinstance(said, dict):
            said = said.get("message", "")
    elif answer is None:
        # Bytes that are not text say nothing; the last character may be cut in two.
        said = content[: 4 * MESSAGE_LIMIT].decode(errors="ignore") if _is_text(content) else ""
    return one_line(str(said))


def is_refusal(content: bytes) -> bool:
    """Whether an answer of 2xx is an error all the same."""
    answer = _json(content)
    return isinstance(answer, dict) and answer.get("status") == "error"


def one_line(text: str) -> str:
    """A text of a stranger as it can be shown: one line, short, without credentials and signed queries."""
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
