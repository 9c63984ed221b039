"""Which engine a container starts, and whether its command line takes more flags: read by rendering, and by its rules.

Source of the first: reference behaviour, section 3.3.
"""

import re
from collections.abc import Iterable, Sequence

from dynamo_shared.api.engines.table import MODULE

# `python3 ... -m ... dynamo.<engine>` within one command of a pipeline or list. In steps instead of one expression: its
# nested repetitions would take cubic time on a long script.
_COMMAND_END = re.compile(r"[|&;]")
_PYTHON = re.compile(r"python[0-9.]*\s")
_MODULE_FLAG = re.compile(r"-m\s")
_ENGINE = re.compile(MODULE)

#: What the arguments of a container without a command are given to; of a frontend, `frontend.COMMAND`.
SHELL = ("/bin/sh", "-c")
_PYTHON_PROGRAM = re.compile(r"(.*/)?python[0-9.]*")
_SHELL_PROGRAM = re.compile(r"(.*/)?(ba|da|a|z|k)?sh")
# `-c`, alone or with other switches, as in `bash -lc` and `sh -ec`.
_SCRIPT_SWITCH = re.compile(r"-[a-z]*c[a-z]*")


def engines_started(line: Iterable[str]) -> frozenset[str]:
    """Engines that a command line starts: none, one, or several."""
    text = " ".join(line)
    if "dynamo." not in text:
        return frozenset()
    return frozenset(engine for command in _COMMAND_END.split(text) if (engine := _engine_of(command)))


def takes_flags(line: Sequence[str]) -> bool:
    """Whether flags for an engine can be put into a command line: of Python, or of a shell with a script."""
    return bool(line) and (_PYTHON_PROGRAM.fullmatch(line[0]) is not None or script_at(line) is not None)


def script_at(line: Sequence[str]) -> int | None:
    """Where in the command line of a shell its script stands; None for other programs, and without a script."""
    if not line or not _SHELL_PROGRAM.fullmatch(line[0]):
        return None
    switch = next((i for i, each in enumerate(line) if i and _SCRIPT_SWITCH.fullmatch(each)), None)
    return switch + 1 if switch is not None and switch + 1 < len(line) else None


def _engine_of(command: str) -> str:
    python = _PYTHON.search(command)
    flag = _MODULE_FLAG.search(command, python.end()) if python else None
    if flag is None:
        return ""
    engines: list[str] = _ENGINE.findall(command, flag.end())
    return engines[-1] if engines else ""
