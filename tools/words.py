"""Fails if a file uses a word that this project replaced with the field's term.

`GLOSSARY` is the table: the word, and its replacement. It applies to names (split at underscores and capitals),
comments, docstrings, messages and documents: in every file of the project with one of `SUFFIXES`, except `EXEMPT`.

`python -m tools.words` checks all files, or the given paths; `--count` prints a number for each path.
"""

import argparse
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

SUFFIXES = {
    *(".py", ".ts", ".mjs", ".css", ".html", ".go", ".sh", ".proto"),
    *(".md", ".txt", ".yaml", ".tpl", ".toml", ".in"),
    "",
}

#: Prefixes of paths that are not checked, with the reason.
EXEMPT = {
    "LICENSE": "the text of the licence",
    "helm/dynamo-crds/definitions/": "generated from the types, which are checked; status.hardware.found is published",
    "services/dynadmin/src/dynamo_dynadmin/page/": "built from services/dynadmin/page",
    "services/pod-builder/src/dynamo_pod_builder/render/workloads/scripts/": "pods run these: other words would be other pods",
    "shared/src/dynamo_shared/api/crds/": "generated from the types, which are checked; status.hardware.found is published",
    "tests/charts/frozen/": "charts of a published release",
    "tests/unit/test_documents.py": "the cases of this check",
    "tests/unit/tools/test_words.py": "the cases of this check",
    "tests/unit/upgrade/0": "files of a published release",
    "tools/words.py": "the glossary",
}

GLOSSARY = {
    "tell|tells|told|telling": "report, say, distinguish",
    "anew": "again, or recreate",
    "made otherwise": "changed",
    "wish|wishes|wished|wanted": "desired",
    "seen|found": "observed",
    "marks": "labels",
    "notes": "annotations",
    "foretell|foretells|foretold": "predicted",
    "for ever": "until cancelled, without end",
    "beside": "next to",
    "nobody|somebody|anybody|whoever": "no one, the user, the caller, or the actor's name",
    "(?<!there )(?:is|are|was|were) no(?! longer| more| one)": "is not a valid X, is not an X",
    "(?<!there )(?-i:(?:is|are|was|were) none)": "there is no X, is not an X",
    "ours": "managed by this platform",
    "how far (?:it|they) (?:is|are)": "progress",
    "look|looks|looked|looking": "reconcile, sync, read, check",
    "flight|flights": "task",
    "land|lands|landed": "settle, arrive",
    "pilot|pilots": "runner",
    "course": "progress",
    "patience": "debounce",
    "picture|pictures": "snapshot, diagram, screenshot",
    "book|books": "rule set",
}

#: Uses with other meanings: terms of the field and of HTTP, folders, and in quotes, fields of documents and values of
#: metrics.
ALLOWED = re.compile(
    r"(?:not|services|endpoints)[ -]found|no (?:message|manifest) found|quotation marks|(?:302|404) Found|in[ -]flight|of course"
    r"|look(?:s|ed|ing)?[ -](?:up|like|for|the same)|pytest mark|(?<=[(, ])marks(?==)|release notes|NOTES\.txt|NotFound"
    r"|(?:make |tools[./]|docs/|\]\()pictures?|pictures[/:]"
    r"|(?<=[\"'`])(?:found|notes|pictures)(?=[\"'`])",
    re.IGNORECASE,
)

#: Fields of a published API, which keep their names; and words that remain to be replaced.
PUBLISHED = {
    "adaptive/demand.py": {"was none"},
    "adaptive/pools.py": {"anybody"},
    "adaptive/cost_benefit.py": {"anybody"},
    "api/estimates.py": {"notes"},
    "api/deploy_models.py": {"notes"},
    "api/replay_models.py": {"notes"},
    "deploy/estimate.ts": {"notes"},
    "parts/replay.ts": {"notes"},
    "tests/replay.ts": {"notes"},
}

GERUNDS = {"looking": "get", "listening": "events", "asking": "scale", "deciding": "decision", "standing": "state"}

_WORDS = [(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), instead) for words, instead in GLOSSARY.items()]
_ANY = re.compile(rf"\b(?:{'|'.join(GLOSSARY)})\b", re.IGNORECASE)
_JOINT = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TEXT = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
_FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")


class Finding(NamedTuple):
    """A word that the glossary replaced, with its place."""

    path: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{_name(self.path)}:{self.line}: {self.word!r}: write {self.instead}"


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, word and replacement, for each replaced word of a text."""
    words = _JOINT.sub(" ", ALLOWED.sub(_blank, text))
    if not _ANY.search(words):
        return
    words = ALLOWED.sub(_blank, words)
    for pattern, instead in _WORDS:
        for match in pattern.finditer(words):
            yield 1 + words.count("\n", 0, match.start()), match[0], instead


def findings_of_python(source: str) -> Iterator[tuple[int, str, str]]:
    """The same for a Python source: its names, comments and strings."""
    if not _ANY.search(_JOINT.sub(" ", source)):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME or token.type in _TEXT:
            for line, word, instead in findings(token.string):
                yield token.start[0] + line - 1, word, instead


def prose(page: str) -> str:
    """A Markdown page without its code; line numbers are preserved."""
    return _CODE.sub(_blank, _FENCE.sub(_blank, page))


def findings_of(path: Path) -> Iterator[Finding]:
    """The replaced words in a file, or in the files of a folder."""
    if path.is_dir():
        for file in files(path):
            yield from findings_of(file)
        return
    if path.stem in GERUNDS:
        yield Finding(path, 1, path.stem, GERUNDS[path.stem])
    published = PUBLISHED.get(f"{path.parent.name}/{path.name}", set())
    text = path.read_text(encoding="utf-8")
    checked = findings_of_python if path.suffix == ".py" else findings
    for line, word, instead in sorted(checked(prose(text) if path.suffix == ".md" else text)):
        if word not in published:
            yield Finding(path, line, word, instead)


def files(folder: Path) -> list[Path]:
    """Files below a folder that are checked: those that git tracks or would add."""
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(listing, cwd=folder, check=True, capture_output=True, text=True).stdout
    paths = (folder / name for name in listed.split("\0") if name)
    return sorted(path for path in paths if path.suffix in SUFFIXES and path.is_file() and not _is_exempt(path))


def _is_exempt(path: Path) -> bool:
    return any(_name(path).startswith(each) for each in EXEMPT)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "-", match[0])


def main() -> int:
    """Print the findings, or their number for each path; returns 1 if there are any."""
    parser = argparse.ArgumentParser(description="Find words that the glossary replaced.")
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders; without, the whole project")
    parser.add_argument("--count", action="store_true", help="only the number for each path")
    options = parser.parse_args()
    number = 0
    for path in options.paths or [ROOT]:
        here = list(findings_of(path.resolve()))
        number += len(here)
        print(f"{len(here):6} {path}") if options.count else [print(each) for each in here]
    return 1 if number else 0


if __name__ == "__main__":
    sys.exit(main())
