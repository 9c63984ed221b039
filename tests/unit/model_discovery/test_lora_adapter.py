"""The adapter that a model requests, its record in the annotation, and the meaning of workers' answers."""

import json
from typing import Any

import pytest
from dynamo_model_discovery.lora.adapter import (
    MAX_PREVIOUS,
    Adapter,
    AdapterRecord,
    InvalidAdapter,
    adapter_of,
    advanced,
    is_lora,
    record_of,
    written,
)
from dynamo_model_discovery.lora.responses import MESSAGE_LIMIT, complaint, is_refusal, names_in
from hypothesis import given
from hypothesis import strategies as st

ANNOTATION = "nvidia.com/loaded-adapter"


def spec(name: Any = "org/a", uri: Any = "s3://b/a") -> dict[str, Any]:
    return {"modelName": name, "baseModelName": "base", "modelType": "lora", "source": {"uri": uri}}


@pytest.mark.parametrize("uri", ["s3://bucket/path", "hf://org/name", "file:///models/a", "file:///models/a@b"])
def test_sources(uri: str):
    assert adapter_of(spec(uri=uri)) == Adapter("org/a", uri)


@pytest.mark.parametrize(
    ("broken", "reason", "said"),
    [
        (spec(uri=""), "InvalidSource", "required for modelType lora"),
        ({"modelName": "a"}, "InvalidSource", "required for modelType lora"),
        (spec(uri="https://x/y"), "InvalidSource", "'https' is not supported; allowed are s3://"),
        (spec(uri="s3"), "InvalidSource", "'s3' is not supported"),
        (spec(uri="s3://b/a b"), "InvalidSource", "no blanks"),
        (spec(uri="s3://b/a\n"), "InvalidSource", "no blanks"),
        (spec(uri="s3://" + "x" * 3000), "InvalidSource", "at most 2048 characters"),
        (spec(uri="s3://key:secret@b/a"), "InvalidSource", "has a user name or password"),
        (spec(name=""), "InvalidName", "cannot be a path segment"),
        (spec(name=".."), "InvalidName", "cannot be a path segment"),
        (spec(name="a\x00"), "InvalidName", "cannot be a path segment"),
    ],
)
def test_a_source_that_cannot_be_loaded_is_reported(broken: dict[str, Any], reason: str, said: str):
    with pytest.raises(InvalidAdapter) as caught:
        adapter_of(broken)
    assert caught.value.reason == reason
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_types():
    assert is_lora({"modelType": "lora"})
    assert is_lora({"modelType": "LoRA"})
    assert not is_lora({"modelType": "adapter"})
    assert not is_lora({})


def test_the_record_contains_no_address():
    record = advanced(None, Adapter("a", "s3://secret-bucket/a"))
    model = {"metadata": {"annotations": {ANNOTATION: written(record)}}}
    assert record_of(model) == record
    assert "secret-bucket" not in written(record)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 1}', "null", '{"x": ' + "[" * 5000])
def test_a_damaged_record_is_ignored(text: str):
    assert record_of({"metadata": {"annotations": {ANNOTATION: text}}}) is None


def test_unknown_fields_of_a_record_are_ignored():
    """Each change of a model reads all records with its name, and a tenant may write thousands of values there."""
    record = AdapterRecord("a", "s", ("b",))
    text = json.dumps({**json.loads(written(record)), "junk": [0] * 20_000})
    assert record_of({"metadata": {"annotations": {ANNOTATION: text}}}) == record


@pytest.mark.parametrize(
    "record",
    [
        AdapterRecord("..", "s"),
        AdapterRecord("", "s"),
        AdapterRecord("a", "s", ("b", "x\r\ny")),
        AdapterRecord("a" * 3000, "s"),
        AdapterRecord("a", "s", tuple(str(number) for number in range(17))),
    ],
)
def test_a_record_of_another_writer_is_ignored(record: AdapterRecord):
    """The platform unloads from the recorded workers: a user who may annotate a model must not choose them."""
    assert record_of({"metadata": {"annotations": {ANNOTATION: written(record)}}}) is None


def test_earlier_names_are_kept_until_they_are_unloaded_on_all_workers():
    first = advanced(None, Adapter("a", "s3://1"))
    assert advanced(first, Adapter("a", "s3://1")) is first
    second = advanced(first, Adapter("a", "s3://2"))
    assert (second.names, second.previous) == (("a",), ("a",))
    assert advanced(second, Adapter("b", "s3://2")).names == ("b", "a")
    record = AdapterRecord("x", "0")
    for number in range(100):
        record = advanced(record, Adapter(f"n{number}", "s3://1"))
    assert len(record.previous) == MAX_PREVIOUS
    assert record.previous[-1] == "n98"


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b'{"status": "success", "loras": {"a": 5, "org/b": 7}, "count": 2}', {"a", "org/b"}),
        (b'{"loras": {"a": -1, "b": 3}}', {"b"}),
        (b'{"loras": []}', set()),
        (b'{"loras": ["a", {"lora_name": "b"}, {"name": "c"}, {"id": 3}, 4]}', {"a", "b", "c"}),
        (b'{"object": "list", "data": [{"id": "a"}]}', {"a"}),
        (b'["a"]', {"a"}),
        (b"", None),
        (b"<html>", None),
        (b"3", None),
        (b'{"status": "error", "message": "x", "loras": {}}', None),
        (b'{"models": []}', None),
    ],
)
def test_names_in_listings(content: bytes, names: set[str] | None):
    result = names_in(content)
    assert (None if result is None else set(result)) == names


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"status": "error", "message": "out of memory"}', "out of memory"),
        (b'{"error": {"message": "no"}}', "no"),
        (b'{"detail": "gone"}', "gone"),
        (b"Route not found", "Route not found"),
        (b"{}", ""),
        (b"\x1f\x8b\xff\xfe\x00", ""),
        (("a" * 1199 + "\u00e9").encode(), "a" * 297 + "..."),
        (b'{"message": "at s3://k:secret@b/a?X-Amz-Signature=deadbeef failed"}', "at s3://***@b/a?... failed"),
        (b"a\x1b[31m\nb", "a [31m b"),
    ],
)
def test_error_texts_of_answers(content: bytes, said: str):
    assert complaint(content) == said


def test_an_error_may_come_with_a_success_code():
    assert is_refusal(b'{"status": "error"}')
    assert not is_refusal(b'{"status": "success"}')
    assert not is_refusal(b"ok")


@given(st.binary(max_size=2000))
def test_any_answer_can_be_read(content: bytes):
    names_in(content)
    is_refusal(content)
    line = complaint(content)
    assert len(line) <= MESSAGE_LIMIT
    assert line == line.strip()
    assert line.isprintable()


def test_nested_values_are_not_an_error():
    assert names_in(b"[" * 100_000) is None
    assert complaint(b"x" * 10_000).endswith("...")
