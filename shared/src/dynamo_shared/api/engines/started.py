"""Recognizes the engine in the command line of a container, and where flags for the engine can be inserted.

The rule of `engines_started` is that of the reference (reference behaviour, section 3.3).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from dynamo_shared.api.engines.table import MODULE
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import KubeObject

# `python3 ... -m ... dynamo.<engine>` within one command of a pipeline or list. Matched in steps, because a single
# expression would take cubic time for a long script.
_COMMAND_END = re.compile(r"[|&;]")
_PYTHON = re.compile(r"python[0-9.]*\s")
_MODULE_FLAG = re.compile(r"-m\s")
_ENGINE = re.compile(MODULE)

#: Command of a container that has only arguments; for a frontend it is `frontend.COMMAND`.
SHELL = ("/bin/sh", "-c")
_PYTHON_PROGRAM = re.compile(r"(.*/)?python[0-9.]*")
_SHELL_PROGRAM = re.compile(r"(.*/)?(ba|da|a|z|k)?sh")
# `-c`, alone or with other options, as in `bash -lc` and `sh -ec`.
_SCRIPT_SWITCH = re.compile(r"-[abd-z]*c[a-z]*")
_LAST_OPTIONS = ("-", "--")
# A line with its continuation lines (backslash), and one command of a pipeline or list in it.
_LINE, _COMMAND = re.compile(r"(?:[^\n\\]+|\\.)+", re.DOTALL), re.compile(r"(?:[^|&;\n\\]+|\\.)+", re.DOTALL)
# A `#` in quotes does not begin a comment.
_COMMENT = re.compile(r"""'[^']*'|"[^"]*"|(?:^|(?<=\s))#""")
_PRINTS = re.compile(r"\s*(?:echo|printf)\s")
#: Characters before the path of a program in a script.
_BEFORE_PROGRAM = frozenset(" \t\n|&;()'\"`")

_Span: TypeAlias = tuple[int, int]


def engines_started(line: Iterable[str]) -> frozenset[str]:
    """The engines that a command line starts: none, one, or several."""
    text = " ".join(line)
    if "dynamo." not in text:
        return frozenset()
    return frozenset(engine for command in _COMMAND_END.split(text) if (engine := _engine_of(command)))


def line_of(container: KubeObject) -> list[str]:
    """Command line of a container."""
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def takes_flags(line: Sequence[str]) -> bool:
    """Whether flags for an engine can be inserted: the command line is of Python, or of a shell with a script."""
    return bool(line) and (_PYTHON_PROGRAM.fullmatch(line[0]) is not None or script_at(line) is not None)


def script_at(line: Sequence[str]) -> int | None:
    """Index of the script in the command line of a shell; None for other programs, and without a script."""
    if not line or not _SHELL_PROGRAM.fullmatch(line[0]):
        return None
    at = next((i for i, each in enumerate(line) if i and _SCRIPT_SWITCH.fullmatch(each)), len(line))
    # The script is the first word after all options.
    while at < len(line) and line[at][:1] in ("-", "+"):
        # Only `-o pipefail`, alone or with other options, has a value.
        at += 2 if "o" in line[at].lower() else 1
        if line[at - 1] in _LAST_OPTIONS:
            break
    return at if at < len(line) else None


def program_of(line: Sequence[str]) -> str:
    """A description of the program of a command line without an engine, for a message."""
    if script_at(line) is not None:
        return "a script without its engine"
    if _SHELL_PROGRAM.fullmatch(line[0]) and _SCRIPT_SWITCH.fullmatch(line[-1]):
        return "a shell without a script"
    return shown(line[0])


def flags_at(script: str, engine: str) -> int | None:
    """Position for flags of an engine in a shell script, after its module; None if the script does not start it."""
    span = _start(script, engine)
    return None if span is None else span[1]


def launcher_at(script: str, engine: str) -> int | None:
    """Position for a launcher of an engine in a shell script, before its Python; None if the script does not start the engine."""
    span = _start(script, engine)
    if span is None:
        return None
    at = span[0]
    while at and script[at - 1] not in _BEFORE_PROGRAM:
        at -= 1
    return at


def _start(script: str, engine: str) -> _Span | None:
    """Start of the engine's Python and end of its module in a shell script; None if the script does not start the
    engine.

    Comments and commands that print their arguments are ignored, unless all matches are of this kind: quotes over
    several commands are not parsed, so the first match is used then.
    """
    # The module may be in quotes, which another shell may read.
    module = re.compile(rf"-m\s+((?:\\?[\"'])?)[^|&;\s]*{re.escape(engine)}[^\s|&;\"')\\]*\1")
    # In steps, because a single expression would take minutes for a script of 1 MB.
    lines = [each.span() for each in _LINE.finditer(script) if module.search(script, *each.span())]
    for start, end in chain(_run(script, lines), _all_commands(script, lines)):
        python = _PYTHON.search(script, start, end)
        match = python and module.search(script, python.end(), end)
        if python and match:
            return python.start(), match.end()
    return None


def is_own_launch(line: Sequence[str], engine: str) -> bool:
    """Whether a command line runs another program, or a script that does not start the engine: flags cannot be
    inserted.

    A shell without a script does not count.
    """
    at = script_at(line)
    if at is not None:
        return flags_at(line[at], engine) is None
    if not line or _PYTHON_PROGRAM.fullmatch(line[0]):
        return False
    return not _SHELL_PROGRAM.fullmatch(line[0]) or any(not _SCRIPT_SWITCH.fullmatch(each) for each in line[1:])


def _all_commands(script: str, lines: Iterable[_Span]) -> Iterator[_Span]:
    """Spans of the commands in some lines of a script."""
    return (each.span() for line in lines for each in _COMMAND.finditer(script, *line))


def _run(script: str, lines: Iterable[_Span]) -> Iterator[_Span]:
    """Spans of the commands that neither print their arguments nor are in a comment."""
    for line in lines:
        for each in _COMMAND.finditer(script, *line):
            start, end = each.span()
            comment = next((mark.start() for mark in _COMMENT.finditer(each[0]) if mark[0] == "#"), None)
            if not _PRINTS.match(each[0]):
                yield start, end if comment is None else start + comment
            if comment is not None:
                break


def _engine_of(command: str) -> str:
    python = _PYTHON.search(command)
    flag = _MODULE_FLAG.search(command, python.end()) if python else None
    if flag is None:
        return ""
    engines: list[str] = _ENGINE.findall(command, flag.end())
    return engines[-1] if engines else ""
