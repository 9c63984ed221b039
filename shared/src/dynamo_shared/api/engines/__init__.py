"""Inference engines: the table of backends, and the commands that start them, one module for each backend."""

from dynamo_shared.api.engines import mocker
from dynamo_shared.api.engines.command import Command, Role
from dynamo_shared.api.engines.table import BACKENDS, CHOICE, MODULE

__all__ = ["BACKENDS", "CHOICE", "MODULE", "Command", "Role", "mocker"]
