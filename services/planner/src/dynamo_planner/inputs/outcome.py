"""How an input says that it is not there."""

from dataclasses import dataclass

from dynamo_planner.core.observing import Missing


class InputError(ValueError):
    """A configuration that cannot be used for an input; the message says which field, and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputUnavailable:
    """An input that was asked for and is not there."""

    why: Missing
    message: str
    """for people: what was looked for, where, and what to do"""
