"""YAML of tenants: in every case little work is done, and the result is a small JSON value or a short rejection."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.untrusted import json_text, yaml_text
from dynamo_shared.api.untrusted.limits import SETTINGS, ReadLimits
from dynamo_shared.api.yaml_output import to_yaml
from hypothesis import example, given
from hypothesis import strategies as st

SMALL = ReadLimits(20_000, 100, 8)
MIB = 1 << 20


def chain(levels: int, line: str) -> str:
    """Lines that each refer to the one before, sixteen times."""
    rest = (line.format(own=n, all=", ".join([f"*a{n - 1}"] * 16), last=f"*a{n - 1}") for n in range(1, levels))
    return "\n".join(["a0: &a0 {x: 1}", *rest])


BOMBS = {
    "aliases": chain(20, "a{own}: &a{own} [{all}]"),
    "merges of merges": chain(900, "a{own}: &a{own} {{<<: [{all}], k{own}: {last}}}"),
    "one large object merged often": "b: &b {"
    + ", ".join(f"k{n}: 1" for n in range(4000))
    + "}\n"
    + "".join(f"m{n}: {{<<: *b}}\n" for n in range(4000)),
    "a list": "[" + "1, " * (MIB // 3 - 1) + "1]",
    "objects": "[" + "{a: 1}, " * 100_000 + "1]",
    "lines": "".join(f"k{n}: v\n" for n in range(90_000)),
    "lists in lists": "[" * 500_000,
    "dashes": "- " * 500_000,
    "indents": "".join(" " * n + "a:\n" for n in range(1400)),
    "anchors": "[" + "".join(f"&a{n} 1, " for n in range(80_000)) + "1]",
    "an object that holds itself": "a: &a [*a]",
    "directives": "".join(f"%TAG !a{n}! x\n" for n in range(40_000)) + "--- a",
    "documents": "--- 1\n" * 170_000,
    "keys without values": "{" + ", ".join(f"k{n}" for n in range(140_000)) + "}",
    "keys that are objects": "? {a: 1}\n: 1",
    "a number of base 60": "a: !!int " + "1:" * 400_000 + "1",
    "an object of Python": "!!python/object/apply:os.system [ls]",
    "not a number": "a: .nan",
    "a huge integer": "a: 0x" + "f" * 300,
}


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[yaml.Event]:
    """The number of parser events that a reader consumed."""
    taken: list[yaml.Event] = []
    parse = yaml_text._events

    def counted(loader: Any) -> Iterator[yaml.Event]:
        for event in parse(loader):
            taken.append(event)
            yield event

    monkeypatch.setattr(yaml_text, "_events", counted)
    return taken


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("limits", [SETTINGS, ReadLimits(2 * MIB, 5_000, 32)], ids=["settings", "any size"])
def test_a_bomb_is_rejected_before_the_work_is_done(name: str, limits: ReadLimits, events: list[yaml.Event]) -> None:
    with pytest.raises(InvalidManifest) as refused:
        yaml_text.documents(BOMBS[name], limits)
    # Keys and values, starts and ends.
    assert len(events) <= 5 * limits.values
    assert len(str(refused.value)) < 400


def test_a_long_text_with_few_values_is_read() -> None:
    text = "a: |\n" + "  line\n" * 10_000
    (result,) = yaml_text.documents(text, SETTINGS)
    assert len(result["a"]) == 50_000
    assert yaml_text.documents("a: " + "1:" * 400 + "1", SETTINGS) == [{"a": "1:" * 400 + "1"}]


TEXTS = ["1e", "e1", "0x", "1.2.3", "100m", "4Gi", "0o", "0o_"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &a {x: 1}\nb: {<<: *a, z: 2}", {"a": {"x": 1}, "b": {"x": 1, "z": 2}}),
        ("a: &a {x: 1}\nb: {<<: [*a, {x: 2, z: 3}], z: 4}", {"a": {"x": 1}, "b": {"x": 1, "z": 4}}),
        ("&k a: 1\nb: *k", {"a": 1, "b": "a"}),
        ("on: yes\n8000: 0x10\n~: 1e3", {"true": True, "8000": 16, "null": 1000}),
        ("y: n\nN: Y\n'y': 'n'", {"true": False, "false": True, "y": "n"}),
        ("a: [1e-3, -2E4, .5e1, 12345e67, 0o17, 09, 1_0e1]", {"a": [0.001, -20000, 5, 12345e67, 15, 9, 100]}),
        ("a: [1e, e1, 0x, 1.2.3, 100m, 4Gi, 0o, 0o_, '1e3', 1e999, ., yy]", {"a": [*TEXTS, "1e3", "1e999", ".", "yy"]}),
        ("a: 2001-01-01\nb: '1'\nc: ! 1\nd: !!str 1", {"a": "2001-01-01", "b": "1", "c": "1", "d": "1"}),
        ("a: {b, c: }", {"a": {"b": None, "c": None}}),
        ("- &a 1\n- &a 2\n- *a", [1, 2, 2]),
    ],
)
def test_yaml_has_the_same_meaning_as_in_kubectl(text: str, value: Any) -> None:
    assert yaml_text.documents(text, SMALL) == [value]


def test_numbers_of_64_bits_are_read_with_a_sign_or_without() -> None:
    """Workers write their ids without a sign."""
    assert yaml_text.documents("instance_id: 12345678901234567890\nb: -9223372036854775808") == [
        {"instance_id": 12345678901234567890, "b": -(2**63)}
    ]
    for beyond in (2**64, -(2**63) - 1):
        assert "JSON has no such value" in str(refused_or(yaml_text.documents, f"a: {beyond}"))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=40,
)


@given(values)
@example({"N": None})
def test_json_values_are_read_equally_by_both_readers(value: Any) -> None:
    assert json_text.decode(json.dumps(value)) == value
    result = refused_or(yaml_text.documents, to_yaml(value))
    assert "is given twice" in result if isinstance(result, str) else result == ([] if value is None else [value])


@given(st.text(alphabet="ab&*<>:-,{}[]?|!%#'\"~ \n\t1.", max_size=300))
def test_any_text_is_read_within_the_limits_or_rejected(text: str) -> None:
    result = refused_or(yaml_text.documents, text, SMALL)
    if isinstance(result, str):
        assert len(result) < 400
        return
    assert sum(map(size, result)) <= SMALL.values
    assert max(map(depth, result), default=0) <= SMALL.depth
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" + "[]," * 200_000 + "1]",
        "[" + '{"":0},' * 100_000 + "1]",
        "9" * 4000,
        "9" * 5000,
        "1e400",
        "NaN",
        "-Infinity",
        '"\\ud800"',
        "",
        b"\xff",
        "{" * 2 * MIB,
    ],
)
def test_json_beyond_the_limits_is_rejected_with_a_short_message(text: str | bytes) -> None:
    with pytest.raises(json_text.InvalidJson) as refused:
        json_text.decode(text, SETTINGS if len(text) < 200_000 else ReadLimits(MIB, 5_000, 32))
    assert len(str(refused.value)) < 250


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_bytes_are_json_or_rejected(text: str | bytes) -> None:
    result = refused_or(lambda: [json_text.decode(text, SMALL)])
    assert not isinstance(result, str) or len(result) < 250


def refused_or(read: Callable[..., list[Any]], *arguments: Any) -> list[Any] | str:
    """The result of a reader, or the message of its rejection."""
    try:
        return read(*arguments)
    except (InvalidManifest, json_text.InvalidJson) as error:
        return str(error)


def size(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(size, value.values()))
    return 1 + sum(map(size, value)) if isinstance(value, list) else 1


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)


@pytest.mark.parametrize("text", ["22:22", "2:4", "-1:30", "1:30.5", "190:20:30"])
def test_a_text_with_a_colon_stays_a_text(text: str) -> None:
    """`kubectl apply` sends it as a text, too."""
    assert yaml_text.documents(f"a: {text}\n{text}: b") == [{"a": text, text: "b"}]
