"""What a frontend runs where its container does not say it."""

COMMAND = ("python3",)
ARGS = ("-m", "dynamo.frontend")
