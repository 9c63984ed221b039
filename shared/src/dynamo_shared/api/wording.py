"""Singular and plural in messages."""


def many(count: int, noun: str) -> str:
    """A number with its noun (given in the singular): `1 pod`, `2 pods`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
