"""The default command of a frontend."""

COMMAND = ("python3",)
ARGS = ("-m", "dynamo.frontend")
