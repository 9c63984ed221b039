"""Fails where a clean package uses a word that this project replaced with the field's own.

The glossary is the table below: the word, and what to write instead. It holds in names (split at underscores and capitals),
comments, docstrings and messages. `CLEAN` lists what is held to it; the list only grows.

`python -m tools.words` checks them; with paths, it checks these, and `--count` prints a number for each path.
"""

import argparse
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

CLEAN = (
    "services/admission",
    "services/ctl",
    "services/dynadmin",
    "services/image-builder",
    "services/model-discovery",
    "services/planner",
    "services/pod-builder",
    "services/scaler",
    "services/watcher",
    "shared/src/dynamo_shared/aio",
    "shared/src/dynamo_shared/api",
    "shared/src/dynamo_shared/bus",
    "shared/src/dynamo_shared/kube",
    "shared/src/dynamo_shared/leases",
    "shared/src/dynamo_shared/runtime",
)

GLOSSARY = {
    "tell|tells|told|telling": "report, say, distinguish",
    "anew": "again, or recreate",
    "made otherwise": "changed",
    "wish|wishes|wished|wanted": "desired",
    "seen|found": "observed",
    "marks": "labels",
    "notes": "annotations",
    "foretell|foretells|foretold": "predicted",
    "for ever": "until cancelled",
    "beside": "next to",
    "nobody|somebody|whoever": "no one, the user, the caller, or the actor's name",
    "(?<!there )(?:is|are|was|were) no(?! longer| more)": "is not a valid X, is not an X",
    "(?-i:is none|are none)": "there is no X, is not an X",
    "ours": "managed by this platform",
    "look|looks|looked|looking": "reconcile, sync, read, check",
    "flight|flights": "task",
    "land|lands|landed": "settle, arrive",
    "pilot|pilots": "runner",
    "course": "progress",
    "patience": "debounce",
    "picture|pictures": "snapshot",
    "book|books": "rule set",
}

# What the field itself calls so; and fields of documents and values of metrics, in quotes.
ALLOWED = re.compile(
    r"(?:not|services|endpoints)[ -]found|no (?:message|manifest) found|quotation marks|404 Found|in[ -]flight|of course"
    r"|look(?:s|ed|ing)?[ -](?:up|like|for|the same)|pytest mark"
    r"|(?<=[\"'`])(?:found|notes)(?=[\"'`])",
    re.IGNORECASE,
)

# Fields of a published API, which keep their names.
PUBLISHED = {"api/estimating.py": {"notes"}, "api/models.py": {"notes"}, "api/replay_models.py": {"notes"}}

# Scripts that pods run: other words in them would be other pods.
RENDERED = ("render/scripts/",)

GERUNDS = {"looking": "get", "listening": "events", "asking": "scale", "deciding": "decision", "standing": "state"}

_WORDS = [(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), instead) for words, instead in GLOSSARY.items()]
_JOINT = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TEXT = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


class Finding(NamedTuple):
    """A word that the glossary replaced, and where it stands."""

    path: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{path}:{self.line}: {self.word!r}: write {self.instead}"


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, word and what to write instead, for each replaced word of a Python source."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME or token.type in _TEXT:
            words = ALLOWED.sub(lambda match: "-" * len(match[0]), _JOINT.sub(" ", token.string))
            for pattern, instead in _WORDS:
                for match in pattern.finditer(words):
                    yield token.start[0] + words.count("\n", 0, match.start()), match[0], instead


def findings_of(path: Path) -> Iterator[Finding]:
    """What the glossary replaced in a file, or in the Python files of a folder."""
    if path.is_dir():
        for file in sorted(path.rglob("*.py")):
            if not any(each in file.as_posix() for each in RENDERED):
                yield from findings_of(file)
        return
    if path.stem in GERUNDS:
        yield Finding(path, 1, path.stem, GERUNDS[path.stem])
    published = PUBLISHED.get(f"{path.parent.name}/{path.name}", set())
    for line, word, instead in findings(path.read_text(encoding="utf-8")):
        if word not in published:
            yield Finding(path, line, word, instead)


def main() -> int:
    """Print findings, or their number for each path; 1 where there are any."""
    parser = argparse.ArgumentParser(description="Find words that the glossary replaced.")
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders; without, the clean packages")
    parser.add_argument("--count", action="store_true", help="only the number for each path")
    options = parser.parse_args()
    number = 0
    for path in options.paths or [ROOT / each for each in CLEAN]:
        here = list(findings_of(path.resolve()))
        number += len(here)
        print(f"{len(here):6} {path}") if options.count else [print(each) for each in here]
    return 1 if number else 0


if __name__ == "__main__":
    sys.exit(main())
