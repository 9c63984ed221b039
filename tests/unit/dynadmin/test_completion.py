"""Completions: what a frontend is sent, what is read of its stream, and the times."""

import json
import tracemalloc
from typing import Any

import pytest
from dynamo_dynadmin.api.chat import _refused
from dynamo_dynadmin.api.completion import (
    LONGEST_TEXT,
    Chunk,
    Completion,
    Garbled,
    _Choice,
    _Delta,
    chunk_of,
    models_of,
    request,
)
from dynamo_dynadmin.api.models import ChatBody
from dynamo_shared.kube import Forbidden, KubeError, Unavailable
from dynamo_shared.kube.errors import SILENCE


def body(**fields: Any) -> ChatBody:
    return ChatBody.model_validate({"messages": [{"role": "user", "content": "x"}], **fields})


def chunk(**fields: Any) -> Chunk:
    result = chunk_of(b"data: " + json.dumps(fields).encode())
    assert result is not None
    return result


def piece(text: str, **fields: Any) -> Chunk:
    return chunk(choices=[{"index": 0, "delta": {"content": text}, **fields}])


def test_parameters_are_added_to_the_request_and_replace_no_field() -> None:
    sent = json.loads(request(body(maxTokens=5, temperature=0, parameters={"top_p": 0.1, "model": "other"}), "m"))
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": 5,
        "temperature": 0,
        "top_p": 0.1,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("line", [b"", b"\n", b": keep-alive\n", b"data: [DONE]\n", b"event: x\n", b"data:\n"])
def test_comments_blank_lines_and_the_end_are_not_events(line: bytes) -> None:
    assert chunk_of(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b'data: {"usage": {"completion_tokens": 1' + b"0" * 400 + b"}}",
        b"data: {",
        b"data: []",
        b'data: {"choices": 3}',
        b'data: {"model": 1}',
        b"data: " + b"[" * 100_000,
    ],
)
def test_what_is_not_a_completion_is_refused(line: bytes) -> None:
    with pytest.raises(Garbled):
        chunk_of(line)


def test_times_are_of_pieces_that_bring_text() -> None:
    completion = Completion("m")
    completion.take(chunk(choices=[{"delta": {"role": "assistant"}}]), 0.05)
    assert completion.take(chunk(choices=[{"delta": {"reasoning_content": "hm"}}]), 0.1) == {"reasoning": "hm"}
    assert completion.take(piece("a"), 0.2) == {"text": "a"}
    completion.take(piece("b", finish_reason="length"), 0.4)
    completion.take(chunk(choices=[], usage={"prompt_tokens": 4, "completion_tokens": 7}), 0.41)
    assert completion.summary(0.5) == {
        "model": "m",
        "finishReason": "length",
        "promptTokens": 4,
        "completionTokens": 7,
        "ttftMs": 100.0,
        "itlMs": 50.0,
        "itlP99Ms": pytest.approx(200, rel=0.05),
        "totalMs": 500.0,
    }


def test_millions_of_pieces_take_little_memory() -> None:
    """A tenant's own frontend could make sixteen chats of its user take 640 MiB."""
    completion = Completion("m")
    tracemalloc.start()
    try:
        for number in range(200_000):
            completion.take(Chunk(choices=[_Choice(_Delta(f"\u0100{number % 1000:03}"))]), float(number))
        assert tracemalloc.get_traced_memory()[0] < 12 << 20
    finally:
        tracemalloc.stop()
    assert completion.summary(1.0)["itlP99Ms"] == 1000
    with pytest.raises(Garbled, match="characters"):
        completion.take(piece("x" * LONGEST_TEXT), 0.5)


def test_an_answer_without_text_has_no_times() -> None:
    summary = Completion("m").summary(0.1)
    assert (summary["ttftMs"], summary["itlMs"], summary["completionTokens"]) == (None, None, 0)


def test_an_error_in_the_stream_ends_it() -> None:
    with pytest.raises(Garbled, match="out of memory"):
        Completion("m").take(chunk(error={"message": "out of memory"}), 0)


def test_models_are_listed() -> None:
    assert models_of(b'{"object": "list", "data": [{"id": "a"}, {"id": "b"}]}') == ["a", "b"]
    with pytest.raises(Garbled):
        models_of(b'{"data": [3]}')


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (Unavailable(500, "", "out of memory"), "unavailable", "the frontend answers 500: out of memory"),
        (Forbidden(403, "", "no such key"), "bad-request", "the frontend answers 403: no such key"),
        (
            Unavailable(0, SILENCE, "no data received for 120 s"),
            "unavailable",
            "the API server does not answer: Silence: ",
        ),
        (Forbidden(403, "Forbidden", "services/proxy"), "forbidden", "services/proxy"),
    ],
)
def test_a_refused_chat_says_who_refused_it(error: KubeError, kind: str, detail: str) -> None:
    problem = _refused(error)
    assert (problem.kind, problem.detail[: len(detail)]) == (kind, detail)
