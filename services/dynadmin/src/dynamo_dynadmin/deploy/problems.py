"""Errors in an intent, as JSON pointers into what the caller sent."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dynamo_shared.api.field_errors import field_errors
from pydantic import BaseModel, ValidationError


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One invalid value: `pointer` (RFC 6901) into what the caller sent, `detail` with the allowed values.

    `source` is the refused field of the object, if the caller did not write that object.
    """

    pointer: str
    detail: str
    source: str = ""


class InvalidIntent(ValueError):
    """An intent is refused; `problems` has all reasons."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("\n".join(f"{each.pointer}: {each.detail}" for each in problems))
        self.problems = tuple(problems)


def pointer(parts: Iterable[str | int]) -> str:
    """RFC 6901: `("serving", "replicas", 0)` as `/serving/replicas/0`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[FieldProblem]:
    """All errors of a document that was sent for a model."""
    messages = [each.message for each in field_errors(error, model.model_json_schema())]
    if len(messages) < error.error_count():
        # There are too many to list: one message says so.
        return [FieldProblem("", each) for each in messages]
    places = [pointer(each["loc"]) for each in error.errors(include_url=False)]
    return [FieldProblem(*each) for each in zip(places, messages, strict=True)]
