"""What a check finds: problems that know where they are only as far as their finder does.

A value that is fine costs no path and no list. A problem travels outwards, and each place on its way adds its own step.
"""

from collections.abc import Callable, Iterable
from typing import Any

from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.field_errors import path_of
from dynamo_shared.api.rules import Location

#: An author mends the first few and tries again; and suggesting names for a million unknown fields would take hours.
LIMIT = 100


class EmbeddedProblem:
    """One wrong place: what is wrong, and the steps to it, the innermost first."""

    __slots__ = ("message", "steps")

    def __init__(self, message: str, location: Location = ()) -> None:
        self.message = message
        self.steps: list[int | str] = list(reversed(location))


Problems = list[EmbeddedProblem] | None
"""None, or an empty list, where all is well."""


class FindingsLimit:
    """How many problems of one object are still reported."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = LIMIT

    def problem(self, message: str, *location: int | str) -> list[EmbeddedProblem]:
        """One problem of the place that is being checked, or at a location below it."""
        self.left -= 1
        return [EmbeddedProblem(message, location)]


Check = Callable[[Any, FindingsLimit], Problems]
"""Finds what is wrong with a JSON value that is not null. Never raises for one, but for RecursionError."""


def under(step: int | str, problems: list[EmbeddedProblem]) -> list[EmbeddedProblem]:
    """The problems of a child, with paths from its parent."""
    for problem in problems:
        problem.steps.append(step)
    return problems


def field_errors(problems: Iterable[EmbeddedProblem]) -> list[FieldError]:
    """Problems of a whole object, in the words that its author reads."""
    return [FieldError(path_of(tuple(reversed(problem.steps))), problem.message) for problem in problems]
