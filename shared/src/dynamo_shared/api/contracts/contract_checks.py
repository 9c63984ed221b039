"""Checks a value with the type of a contract: types and bounds, rules, and unknown keys."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from dynamo_shared.api.contracts.base import ContractModel, Problem, model_of, names_of, unread
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.field_errors import located_errors, path_of, shown, suggestion_for
from dynamo_shared.api.rules import Location

#: Unknown keys for which a similar known key is searched: each search takes 0.2 ms, and a document may have thousands.
HINTS = 20


def errors(model: type[BaseModel], value: Any) -> list[FieldError]:
    """The `problems` of a value, with their paths."""
    return [FieldError(path_of(location), message) for location, message in problems(model, value)]


def warnings(model: type[BaseModel], value: Any) -> list[FieldError]:
    """The `remarks` about a value, with their paths."""
    return [FieldError(path_of(location), message) for location, message in remarks(model, value)]


def problems(model: type[BaseModel], value: Any) -> list[Problem]:
    """Errors that must be fixed before a value can be used: types and bounds, or if these are valid, rules between fields.

    Unknown keys are not errors: another version of the program may know them.
    """
    if not isinstance(value, dict):
        return [((), f"must be an object, not {shown(value)}")]
    try:
        parsed = model.model_validate(value)
    except ValidationError as error:
        return located_errors(error, _known(model))
    return [problem for part in _parts(parsed, value, ()) for problem in _located(part, part[0].problems())]


def remarks(model: type[BaseModel], value: Any) -> list[Problem]:
    """Settings that are allowed but probably mistakes: unknown keys, older names and, if all is valid, some without effect."""
    result = list(_keys(model, value, (), iter(range(HINTS))))
    try:
        parsed = model.model_validate(value)
    except ValidationError:
        return result
    for part in _parts(parsed, value, ()):
        result += [*_located(part, unread(part[0])), *_located(part, part[0].remarks())]
    return result


@cache
def _known(model: type[BaseModel]) -> dict[str, Any]:
    """Schema of a type, for suggestions of names for unknown fields."""
    return model.model_json_schema(by_alias=True)


_Part = tuple[ContractModel, dict[str, Any], Location]


def _parts(parsed: Any, written: Any, location: Location) -> Iterator[_Part]:
    """Every contract within a parsed value, with the JSON from which it was parsed, and its location."""
    if isinstance(parsed, list):
        for index, each in enumerate(parsed):
            yield from _parts(each, written[index], (*location, index))
    elif isinstance(parsed, dict):
        for key, each in parsed.items():
            yield from _parts(each, written[key], (*location, key))
    elif isinstance(parsed, BaseModel):
        if isinstance(parsed, ContractModel):
            yield parsed, written, location
        for name, field in type(parsed).model_fields.items():
            key = next((each for each in names_of(name, field) if each in written), None)
            if key is not None:
                yield from _parts(getattr(parsed, name), written[key], (*location, key))
        for key, each in (parsed.__pydantic_extra__ or {}).items():
            yield from _parts(each, written[key], (*location, key))


def _located(part: _Part, problems: Iterator[Problem]) -> Iterator[Problem]:
    """Problems of one contract with locations in the whole document, under the names that the author wrote."""
    model, written, location = part
    for (first, *rest), message in problems:
        field = type(model).model_fields.get(str(first))
        names = names_of(str(first), field) if field is not None else (str(first),)
        key = next((each for each in names if each in written), names[0])
        yield (*location, key, *rest), message


def _keys(model: type[BaseModel], value: Any, location: Location, hints: Iterator[int]) -> Iterator[Problem]:
    """Keys of a value that its type does not know, or knows by a newer name."""
    if not isinstance(value, dict):
        return
    fields = {
        key: (names_of(name, field), field)
        for name, field in model.model_fields.items()
        for key in names_of(name, field)
    }
    further = model.__annotations__.get("__pydantic_extra__") if issubclass(model, ContractModel) else None
    for key, item in value.items():
        if key not in fields:
            if further is not None:
                if (of_entries := model_of(further)) is not None:
                    yield from _keys(of_entries, item, (*location, key), hints)
            elif issubclass(model, ContractModel):
                instead = model.MISTAKEN.get(str(key))
                known = (names[0] for names, _ in fields.values())
                meant = suggestion_for(str(key), known) if next(hints, None) is not None else ""
                advice = f": {instead}" if instead else meant
                yield (*location, key), f"is not a known key, and has no effect{advice}"
            continue
        names, field = fields[key]
        if key != names[0] and issubclass(model, ContractModel):
            yield (*location, key), f"is the old name of {names[0]}"
        inner = model_of(field.annotation)
        if inner is None:
            continue
        for index, each in enumerate(item if isinstance(item, list) else [item]):
            yield from _keys(inner, each, (*location, key, *((index,) if isinstance(item, list) else ())), hints)
