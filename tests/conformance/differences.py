"""Where our objects may differ from the recorded ones: `differences.toml`, each entry with its reason."""

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

FILE = Path(__file__).parent / "differences.toml"


@dataclass(frozen=True, slots=True)
class Difference:
    """One rule that we follow and the reference does not: in which cases, at which objects, at which paths."""

    cases: str
    objects: str
    paths: re.Pattern[str]
    reason: str

    def allows(self, case: str, key: str, path: str) -> bool:
        """Whether this is the reason for a difference. `path` is "" for an object that only one side has."""
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
    """Whether a difference is one of those that are meant."""
    return any(each.allows(case, key, path) for each in listed)
