"""The error for invalid settings, separate for modules that explain it and do not need the settings."""


class InvalidSettings(Exception):
    """The settings are invalid; the message has a line for each error: where it is, and what is allowed."""

    def __init__(self, source: str, mistakes: list[str]) -> None:
        super().__init__("\n".join(f"{source}: {mistake}" for mistake in mistakes))
        self.mistakes = mistakes
