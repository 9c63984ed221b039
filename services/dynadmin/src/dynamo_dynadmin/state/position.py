"""Positions in a NATS stream, as ids of server-sent events."""

from typing import NamedTuple, Self


class Position(NamedTuple):
    """A reader's position in a stream: the id of an event."""

    sequence: int
    incarnation: str

    def __str__(self) -> str:
        return f"{self.sequence}-{self.incarnation}"

    @classmethod
    def of(cls, text: str) -> Self | None:
        """The position of an id; None if the id is not valid."""
        sequence, _, incarnation = text.partition("-")
        if not (sequence.isascii() and sequence.isdecimal()) or len(sequence) > 20:
            return None
        if not incarnation or len(incarnation) > 64:
            return None
        return cls(int(sequence), incarnation)


def incarnation_of(text: str) -> str:
    """The incarnation of a stream as part of ids: only letters and digits."""
    return "".join(each for each in text if each.isalnum()) or "0"
