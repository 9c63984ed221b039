"""What a frontend runs where its container does not say it."""

from __future__ import annotations

COMMAND = ("python3",)
ARGS = ("-m", "dynamo.frontend")
