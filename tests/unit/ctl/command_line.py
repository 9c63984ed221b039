"""Runs command lines in the process of the tests, and writes files for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from dynamo_ctl.errors import ExitCode


class Ran(NamedTuple):
    """The result of a command line."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The printed YAML documents. Raises AssertionError if the command failed."""
        assert self.code == ExitCode.OK, self.err
        return [each for each in yaml.load_all(self.out, yaml.CSafeLoader) if each]


Dynamoctl = Callable[..., Ran]
"""Runs the command line of its arguments: the fixture `dynamoctl`."""


def written(folder: Path, text: str, name: str = "graph.yaml") -> Path:
    """Write a file with this text."""
    file = folder / name
    file.write_text(text)
    return file
