"""Command lines in the tests' own process, and files for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from dynamo_ctl.errors import ExitCode


class Ran(NamedTuple):
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The YAML that it printed. AssertionError where it failed."""
        assert self.code == ExitCode.OK, self.err
        return [each for each in yaml.load_all(self.out, yaml.CSafeLoader) if each]


Dynamoctl = Callable[..., Ran]
"""Runs the command line of its arguments: the fixture `dynamoctl`."""


def written(folder: Path, text: str, name: str = "graph.yaml") -> Path:
    """A file with this text."""
    file = folder / name
    file.write_text(text)
    return file
