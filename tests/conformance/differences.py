"""Allowed differences between this platform's objects and the recorded ones: `differences.toml`, each with a reason."""

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

FILE = Path(__file__).parent / "differences.toml"


@dataclass(frozen=True, slots=True)
class Difference:
    """One rule of this platform that the reference does not have: the cases, objects and paths that it affects."""

    cases: str
    objects: str
    paths: re.Pattern[str]
    reason: str

    def allows(self, case: str, key: str, path: str) -> bool:
        """Whether this entry explains a difference. `path` is "" for an object that only one side has."""
        return (
            fnmatchcase(case, self.cases) and fnmatchcase(key, self.objects) and self.paths.fullmatch(path) is not None
        )


def load(file: Path = FILE) -> tuple[Difference, ...]:
    """All listed differences; KeyError for an entry without a reason."""
    entries = tomllib.loads(file.read_text()).get("difference", [])
    return tuple(
        Difference(each["cases"], each["objects"], re.compile(each["paths"]), each["reason"]) for each in entries
    )


def listed_in(listed: tuple[Difference, ...], case: str, key: str, path: str) -> bool:
    """Whether a difference is intended."""
    return any(each.allows(case, key, path) for each in listed)
