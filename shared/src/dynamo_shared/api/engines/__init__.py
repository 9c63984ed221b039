"""Inference engines: the table of backends, and their commands, one file a backend."""

from dynamo_shared.api.engines import mocker
from dynamo_shared.api.engines.command import Command, Role
from dynamo_shared.api.engines.table import BACKENDS, CHOICE, MODULE

__all__ = ["BACKENDS", "CHOICE", "MODULE", "Command", "Role", "mocker"]
