"""How an input reports that it is missing."""

from dataclasses import dataclass

from dynamo_planner.core.observation import Missing


class InputError(ValueError):
    """A configuration that an input cannot use; the message names the field and the allowed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputUnavailable:
    """A requested input that is missing."""

    why: Missing
    message: str
    """for users: what was searched, where, and the remedy"""
