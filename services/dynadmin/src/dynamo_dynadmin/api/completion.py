"""A chat completion: the request to a frontend, its stream, and the measured times. Pure."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from statistics import quantiles
from typing import Annotated, Any

import msgspec

from dynamo_dynadmin.api.models import ChatBody

#: Parameters of a completion that this API sets itself.
RESERVED = ("model", "messages", "stream", "stream_options", "n", "max_tokens", "temperature", "seed")
_PREFIX, _DONE = b"data:", b"[DONE]"
#: Characters of an answer that are kept: a frontend of a tenant may send millions of pieces, to many chats at once.
LONGEST_TEXT = 1 << 20


class Garbled(ValueError):
    """The frontend's answer is not a valid stream of completions."""


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


#: Larger numbers are an error of the frontend, and not all are safe to divide by.
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


class _Usage(msgspec.Struct):
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0


class Chunk(msgspec.Struct):
    """One event of the stream."""

    model: str = ""
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model] = []


_chunk = msgspec.json.Decoder(Chunk).decode
_models = msgspec.json.Decoder(_Models).decode


def request(body: ChatBody, model: str) -> bytes:
    """The completion request to a frontend."""
    given: dict[str, Any] = {
        "max_tokens": body.max_tokens,
        "temperature": body.temperature,
        "seed": body.seed,
    }
    return msgspec.json.encode(
        {
            **body.parameters,
            **{name: value for name, value in given.items() if value is not None},
            "model": model,
            "messages": [{"role": each.role, "content": each.content} for each in body.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )


def chunk_of(line: bytes) -> Chunk | None:
    """The event in a line; None for comments, blank lines and the end. Garbled."""
    text = line.strip()
    if not text.startswith(_PREFIX):
        return None
    data = text.removeprefix(_PREFIX).strip()
    if not data or data == _DONE:
        return None
    try:
        return _chunk(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Garbled(f"the frontend's answer is not a valid completion: {error}") from error


def models_of(content: bytes) -> list[str]:
    """Names of the models that a frontend serves. Raises Garbled."""
    try:
        return [each.id for each in _models(content).data]
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Garbled(f"the frontend's list of models is not valid: {error}") from error


@dataclass(slots=True)
class Completion:
    """The received part of a completion. Times are seconds since the request was sent."""

    model: str
    text: StringIO = field(default_factory=StringIO)
    reasoning: StringIO = field(default_factory=StringIO)
    characters: int = 0
    finish_reason: str = ""
    usage: _Usage | None = None
    times: "array[float]" = field(default_factory=lambda: array("d"))
    """arrival time of each piece of text"""

    def take(self, chunk: Chunk, at: float) -> dict[str, str]:
        """Adds a chunk; returns its text, by kind (`text`, `reasoning`). Garbled if the chunk reports an error, or the
        text is too long.
        """
        if chunk.error is not None:
            raise Garbled(f"the frontend answers: {str(chunk.error)[:500]}")
        self.model = chunk.model or self.model
        self.usage = chunk.usage or self.usage
        brought: dict[str, str] = {}
        for choice in chunk.choices[:1]:
            self.finish_reason = choice.finish_reason or self.finish_reason
            if choice.delta is None:
                continue
            pieces = (
                ("text", self.text, choice.delta.content),
                ("reasoning", self.reasoning, choice.delta.reasoning_content),
            )
            for kind, whole, piece in pieces:
                if piece:
                    self.characters += whole.write(piece)
                    brought[kind] = piece
        if self.characters > LONGEST_TEXT:
            raise Garbled(f"the frontend's answer has more than {LONGEST_TEXT} characters")
        if brought:
            self.times.append(at)
        return brought

    def summary(self, ended: float) -> Mapping[str, Any]:
        """The end of the completion, with its figures: the mean time between tokens uses the frontend's token count."""
        tokens = self.usage.completion_tokens if self.usage is not None else len(self.times)
        spent = self.times[-1] - self.times[0] if self.times else 0.0
        gaps = [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]
        return {
            "model": self.model,
            "finishReason": self.finish_reason,
            "promptTokens": self.usage.prompt_tokens if self.usage is not None else None,
            "completionTokens": tokens,
            "ttftMs": _ms(self.times[0]) if self.times else None,
            "itlMs": _ms(spent / (tokens - 1)) if tokens > 1 and spent > 0 else None,
            "itlP99Ms": _ms(quantiles(gaps, n=100, method="inclusive")[98]) if len(gaps) > 1 else None,
            "totalMs": _ms(ended),
        }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
