import shutil
import sys
from datetime import UTC, datetime

import pytest
import yaml
from dynamo_ctl.output import age, columns, echo, echo_log, own_command, span
from dynamo_shared.api.yaml_output import to_yaml
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0.9, "0s"), (120, "120s"), (121, "2m"), (10_799, "179m"), (10_800, "3h"), (172_800, "2d")],
)
def test_spans_are_written_in_the_largest_whole_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize("on_path", [True, False])
def test_a_printed_command_can_be_run_by_the_shell(on_path: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if on_path else None)
    monkeypatch.setattr(sys, "executable", "/work/.venv/bin/python")
    assert own_command() == ("dynamoctl" if on_path else "/work/.venv/bin/dynamoctl")


def test_age_counts_from_a_moment() -> None:
    assert age("2026-01-01T00:00:00Z", datetime(2026, 1, 1, 0, 0, 42, tzinfo=UTC)) == "42s"
    assert age("") == "-"


def test_columns_line_up_without_trailing_blanks() -> None:
    assert columns(["NAME", "AGE"], [["long-name", "1s"], ["b", ""]]) == ["NAME        AGE", "long-name   1s", "b"]


@pytest.mark.parametrize(
    "text", ["y", "N", "12e5", "12345e67", "0o17", "0x1F", "1_000", ".5", "8000", "true", "~", "1.2.0"]
)
def test_ambiguous_yaml_scalars_are_quoted(text: str) -> None:
    line = to_yaml({"value": text})
    assert line.startswith("value: '")
    assert yaml.safe_load(line) == {"value": text}


@pytest.mark.parametrize("text", ["8Gi", "python3", "nvcr.io/nvidia/image:1.2.1", "25%"])
def test_plain_words_are_not_quoted(text: str) -> None:
    assert to_yaml({"value": text}) == f"value: {text}\n"


@given(st.text(), st.text())
def test_texts_in_yaml_are_read_back_unchanged(one: str, two: str) -> None:
    assert yaml.safe_load(to_yaml({"a": one, "b": [two, two]})) == {"a": one, "b": [two, two]}


def test_the_same_list_twice_is_written_twice() -> None:
    verbs = ["get", "list"]
    assert "&" not in to_yaml({"a": verbs, "b": verbs})


def test_a_cell_cannot_become_another_row() -> None:
    forged = "fine\nchat   vllm   successful"
    assert columns(["NAME", "MESSAGE"], [["a", forged]]) == ["NAME   MESSAGE", r"a      fine\nchat   vllm   successful"]


def test_output_has_no_untrusted_control_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\x1b]0;title\x07\nb")
    echo("c\x1b[2J", err=True)
    out, err = capsys.readouterr()
    assert (out, err) == ("a\\u001b]0;title\\u0007\nb\n", "c\\u001b[2J\n")


def test_untrusted_yaml_is_unchanged_without_control_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a\x9bb": "x\u202ey", "c": "l\nm\x1b[31m", "d": "plain"}
    echo(to_yaml(value))
    out, _ = capsys.readouterr()
    assert out.replace("\n", "").isprintable()
    assert yaml.safe_load(out) == value


def test_logs_retain_only_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("typer.echo", shown.append)
    echo_log("\x1b[1;31mred\x1b[0m \x1b[2J\x1b]8;;http://x\x07")
    assert shown == ["\x1b[1;31mred\x1b[0m \\u001b[2J\\u001b]8;;http://x\\u0007"]
