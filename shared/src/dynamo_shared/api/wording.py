"""Words of messages that depend on a number."""


def many(count: int, noun: str) -> str:
    """A number of things: `1 pod`, `2 pods`; `noun` is in the singular."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
