"""Results of checks: problems with relative paths.

Valid values need no path and no list. A problem is returned outwards, and each level adds its step to the path.
"""

from collections.abc import Callable, Iterable
from typing import Any

from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.field_errors import path_of
from dynamo_shared.api.rules import Location

#: Limit of the problems of one object, because users correct the first ones and try again, and suggestions take time.
LIMIT = 100


class EmbeddedProblem:
    """A problem: the message, and the steps of the path, the innermost first."""

    __slots__ = ("message", "steps")

    def __init__(self, message: str, location: Location = ()) -> None:
        self.message = message
        self.steps: list[int | str] = list(reversed(location))


Problems = list[EmbeddedProblem] | None
"""None or an empty list means that the value is valid."""


class FindingsLimit:
    """Number of problems of one object that may still be reported."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = LIMIT

    def problem(self, message: str, *location: int | str) -> list[EmbeddedProblem]:
        """A problem of the value that is being checked, or at a location below it."""
        self.left -= 1
        return [EmbeddedProblem(message, location)]


Check = Callable[[Any, FindingsLimit], Problems]
"""Checks a JSON value that is not null. Raises only RecursionError."""


def under(step: int | str, problems: list[EmbeddedProblem]) -> list[EmbeddedProblem]:
    """The problems of a child, with paths relative to its parent."""
    for problem in problems:
        problem.steps.append(step)
    return problems


def field_errors(problems: Iterable[EmbeddedProblem]) -> list[FieldError]:
    """Problems of a whole object as errors with paths."""
    return [FieldError(path_of(tuple(reversed(problem.steps))), problem.message) for problem in problems]
