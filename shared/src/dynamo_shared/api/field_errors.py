"""Converts errors of pydantic to messages for the author of a manifest: the path, the problem, the allowed values."""

import json
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from heapq import nlargest
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dynamo_shared.api import component_names, runtime_version
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.words import escaped

_WRONG_TYPE = {
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
}
_UNITS = {"string_too_short": "characters", "string_too_long": "characters", "too_short": "items", "too_long": "items"}
_ENDS = "and a letter or digit first and last"
#: Patterns of the schemas, in words.
_PATTERNS = {
    component_names.NAME_PATTERN: f"letters, digits and '-', {_ENDS}",
    r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$": f"lower-case letters, digits and '-', {_ENDS}",
    runtime_version.PATTERN: "MAJOR.MINOR.PATCH, each from 0 to 9999 and without leading zeros",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": f"lower-case letters, digits and '-', {_ENDS}",
}

#: Limit of the suggestions for one manifest.
_SUGGESTIONS = 100
#: Limit of the listed errors of one validation, each of which needs 0.5 KB.
_LISTED = 10_000
#: Limit of the known words that are compared with one word, because a tenant may define thousands in an object.
_COMPARED = 100
#: Length limit of words with suggestions, because the time grows with the cube of the length. Characters.
_MAX_WORD_LENGTH = 63
#: Limit of the known words (those with the most letters in common) that are compared in full, up to 1 ms each.
_LIKELY = 4
#: Length from which on keys in paths are truncated. Characters.
_MAX_KEY_LENGTH = 100


def field_errors(
    error: ValidationError, schema: Mapping[str, Any] | None = None, moved: Mapping[str, str] | None = None
) -> list[FieldError]:
    """All errors of a validation; see `located_errors`."""
    return [FieldError(path_of(location), message) for location, message in located_errors(error, schema, moved)]


def located_errors(
    error: ValidationError, schema: Mapping[str, Any] | None = None, moved: Mapping[str, str] | None = None
) -> list[tuple[Location, str]]:
    """All errors of a validation, each as its location and message.

    `schema`, the kind's, provides suggestions for unknown fields; `moved` explains fields of another version. If there
    are more than 10,000 errors, only their number is reported.
    """
    if (count := error.error_count()) > _LISTED:
        return [((), f"{count} errors, more than the {_LISTED} that are listed; correct repeated mistakes first")]
    return [
        # A search for a similar word takes time, so only the first errors have suggestions.
        (finding["loc"], _message(finding, schema or {} if number < _SUGGESTIONS else {}, moved or {}))
        for number, finding in enumerate(error.errors(include_url=False))
    ]


def path_of(location: Location) -> str:
    """`("spec", "components", 1, "name")` as `spec.components[1].name`; keys with dots or slashes are quoted."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif len(part) > _MAX_KEY_LENGTH:
            path += f"[{_quoted_key(f'{part[: _MAX_KEY_LENGTH - 3]}...')}]"
        elif part.replace("-", "_").isidentifier():
            path += f".{part}" if path else part
        else:
            path += f"[{_quoted_key(part)}]"
    return path


def _quoted_key(key: str) -> str:
    # Escaped, because a tenant may choose the key, and the path is written to logs and terminals.
    return escaped(json.dumps(key, ensure_ascii=False))


def shown(value: Any) -> str:
    """A value as a short quotation in a message; "an object" or "a list" for these."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str() | bytes():
            # Truncated first, because quoting may replace one character by six.
            value = value[:80]
        case int() if value.bit_length() > 256:
            return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def suggestion_for(word: str, known: Iterable[str], similarity: float = 0.6) -> str:
    """`; did you mean components?`, or "" if no known word is similar: 1.0 is the same word."""
    if len(word) > _MAX_WORD_LENGTH:
        return ""
    by_lower = {each.lower(): each for each in islice(known, _COMPARED) if len(each) <= _MAX_WORD_LENGTH}
    # h200 means h200_sxm, although mi200 has more letters in common.
    if whole := next((each for each in by_lower if each.startswith(f"{word.lower()}_")), None):
        return f"; did you mean {by_lower[whole]}?"
    matcher = SequenceMatcher(b=word.lower())

    def in_common(known: str) -> float:
        matcher.set_seq1(known)
        return matcher.quick_ratio()

    close = get_close_matches(word.lower(), nlargest(_LIKELY, by_lower, key=in_common), n=1, cutoff=similarity)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def _message(finding: ErrorDetails, schema: Mapping[str, Any], moved: Mapping[str, str]) -> str:
    kind, value, context = finding["type"], finding["input"], finding.get("ctx", {})
    if kind in _WRONG_TYPE:
        return f"must be {_WRONG_TYPE[kind]}, not {shown(value)}"
    match kind:
        case "missing":
            return "required, and missing"
        case "extra_forbidden":
            return _unknown_field(finding["loc"], schema, moved)
        case "enum" | "literal_error":
            return f"{shown(value)} is not allowed; one of {context['expected'].replace(' or ', ', ')}"
        case "string_pattern_mismatch":
            return f"{shown(value)} is not allowed; {_PATTERNS.get(context['pattern'], context['pattern'])}"
        case "string_too_short" | "too_short":
            least, unit = context["min_length"], _UNITS[kind]
            return "must not be empty" if least == 1 else f"{len(value)} {unit}, but at least {least} are required"
        case "string_too_long" | "too_long":
            return f"{len(value)} {_UNITS[kind]}, but at most {context['max_length']} are allowed"
        case "greater_than_equal":
            return f"{shown(value)} is too small; at least {context['ge']}"
        case "greater_than":
            return f"{shown(value)} is too small; must be above {context['gt']}"
        case "less_than_equal" | "int_parsing_size":
            return f"{shown(value)} is too large" + (f"; at most {context['le']}" if "le" in context else "")
        case _:
            return finding["msg"]


def _unknown_field(location: Location, schema: Mapping[str, Any], moved: Mapping[str, str]) -> str:
    name = str(location[-1])
    known = _properties(schema, location[:-1])
    if name in moved:
        return f"no such field; {moved[name]}"
    if suggestion := suggestion_for(name, known):
        return f"no such field{suggestion}"
    return f"no such field; there are {', '.join(sorted(known))}" if known else "no such field"


def _properties(schema: Mapping[str, Any], location: Location) -> list[str]:
    for part in location:
        if isinstance(part, int):
            schema = schema.get("items", {})
        else:
            schema = schema.get("properties", {}).get(part) or schema.get("additionalProperties", {})
    return list(schema.get("properties", {}))
