"""pydantic's findings in the words of a manifest's author: where it is, what is wrong, what is allowed."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from dynamo_shared.api.errors import FieldError

_PLAIN = {
    "missing": "required, and missing",
    "extra_forbidden": "no such field",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
}


def field_errors(error: ValidationError) -> list[FieldError]:
    """Every finding of a validation, in the order of the fields."""
    return [
        FieldError(
            path_of(finding["loc"]), _message(finding["type"], finding["input"], finding.get("ctx", {}), finding)
        )
        for finding in error.errors(include_url=False)
    ]


def path_of(location: tuple[int | str, ...]) -> str:
    """`("spec", "components", 1, "name")` as `spec.components[1].name`; keys that hold dots are quoted."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier() or part.replace("-", "_").isidentifier():
            path += f".{part}" if path else part
        elif part == "[key]":
            continue
        else:
            path += f'["{part}"]'
    return path


def shown(value: Any) -> str:
    """A value as a message quotes it: short, and never a whole subtree."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = "true" if value is True else "false" if value is False else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _message(kind: str, value: Any, context: dict[str, Any], finding: Any) -> str:
    if kind in ("missing", "extra_forbidden"):
        return _PLAIN[kind]
    if kind in _PLAIN:
        return f"{_PLAIN[kind]}, not {shown(value)}"
    match kind:
        case "enum" | "literal_error":
            return f"{shown(value)} is none of {context['expected'].replace(' or ', ', ')}"
        case "string_pattern_mismatch":
            return f"{shown(value)} does not match {context['pattern']}"
        case "string_too_short":
            return f"must have at least {context['min_length']} character"
        case "string_too_long":
            return f"{len(value)} characters, where at most {context['max_length']} are allowed"
        case "too_long":
            return f"{context['actual_length']} items, where at most {context['max_length']} are allowed"
        case "greater_than_equal":
            return f"{shown(value)} is too small; at least {context['ge']}"
        case "less_than_equal":
            return f"{shown(value)} is too large; at most {context['le']}"
        case _:
            return str(finding["msg"])
