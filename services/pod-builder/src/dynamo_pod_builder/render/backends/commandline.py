"""Command lines of engines, in the forms that users write: searched for flags, and extended with flags.

Python directly (`python3 -m dynamo.vllm --model x`, across `command` and `args`), or in a shell script
(`sh -c "cd /x && python3 -m dynamo.vllm ..."`). Other programs are refused, because they cannot be recognized by their
flags.
"""

import contextlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.engines.started import (
    SHELL,
    engines_started,
    flags_at,
    launcher_at,
    line_of,
    program_of,
    script_at,
    takes_flags,
)
from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.render.errors import RenderError

# Characters without a special meaning in any shell.
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
# `$(NAME)` is not a command here: Kubernetes replaces it with a variable before the shell reads it.
_ESCAPED = re.compile(r"(\$\([A-Za-z_][A-Za-z0-9_.-]*\))|[\\\"$`]")
# A script of only one program with its arguments, which another program can start.
_ONE_PROGRAM = re.compile(r"(?! *[A-Za-z_]\w*=)[^|&;\n]+")
# A reference of a script to an argument of its shell.
_ARGUMENT = re.compile(r"\$\{?[@*0-9]")
# Beginnings of a command line that every shell reads in the same way.
_PLAIN_SHELLS = ([*SHELL], ["sh", "-c"])
# A number as a flag's value. Longer ones are left to the engine to report: Python itself refuses thousands of digits.
_NUMBER = re.compile(r"[0-9]{1,9}")
# Quotes in a longer script are not parsed, because that takes quadratic time. Characters.
_READ = 16_384
# A comment of a script, or a part in which `#` begins none. A comment may contain an apostrophe.
_COMMENT = re.compile(r"""'[^']*'|"(?:[^"\\]++|\\.)*+"|\\.|(?:^|(?<=[\s;&|(]))(?P<comment>#[^\n]*)""", re.DOTALL)
_PATH = "podTemplate.spec.containers[main]"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The main container's `command` and `args`; `script_at`: index of a script across both lists, if there is one."""

    component: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    script_at: int | None
    #: Variables of the container whose values a shell could change between quotes.
    unsafe: frozenset[str] = frozenset()

    @property
    def words(self) -> list[str]:
        """The words of the whole line; a script is split like a shell would, if possible."""
        line = [*self.command, *self.args]
        split: list[str] = []
        for index, each in enumerate(line):
            if index == self.script_at:
                split += _split(each)
            else:
                # Several words in one argument are a mistake; the author meant separate words.
                split += each.split() if each.startswith("-") and " " in each else [each]
        return split

    def flag(self, *names: str) -> str | None:
        """The last value of a flag under any of its names, `--flag value` or `--flag=value`; None without it."""
        value: str | None = None
        words = self.words
        for index, word in enumerate(words):
            name, equals, rest = word.partition("=")
            if name in names:
                value = rest if equals else (words[index + 1] if index + 1 < len(words) else "")
        return value

    def number(self, *names: str) -> int:
        """The value of a numeric flag; 1 without it, or if only the container will know it (`$TP`)."""
        value = self.flag(*names)
        return max(1, int(value)) if value is not None and _NUMBER.fullmatch(value) else 1

    def with_flags(self, flags: Sequence[str], engine: str, *, shell: bool = False) -> tuple[list[str], list[str]]:
        """`command` and `args` with flags for the engine. With `shell`, a shell must evaluate arithmetic in the flags.

        Raises RenderError if there is no place for the flags.
        """
        if self.script_at is None:
            if not shell:
                return list(self.command), [*self.args, *flags]
            return ["sh", "-c"], [f"exec {self.quoted} {' '.join(flags)}"]
        line = [*self.command, *self.args]
        line[self.script_at] = self._inserted(line[self.script_at], " ".join(flags), engine)
        return line[: len(self.command)], line[len(self.command) :]

    def as_script(self, flags: Sequence[str] = (), engine: str = "") -> str:
        """The whole line as a shell script, with flags for the engine."""
        if self.script_at is None:
            return " ".join([self.quoted, *flags])
        script = [*self.command, *self.args][self.script_at]
        return self._inserted(script, " ".join(flags), engine) if flags else script

    def behind(self, before: str, flags: Sequence[str] = (), engine: str = "") -> tuple[list[str], list[str]]:
        """`command` and `args` of a shell that runs `before` and then the line, with flags for the engine.

        A script keeps the shell that its author chose: another shell may not understand what Bash does.
        """
        script, line = f"{before} {self.as_script(flags, engine)}", [*self.command, *self.args]
        if self.script_at is None or line[:-1] in _PLAIN_SHELLS:
            return [*SHELL], [script]
        line[self.script_at] = script
        return line[: len(self.command)], line[len(self.command) :]

    def launched(self, launcher: str, engine: str) -> str:
        """The whole line as a script in which `launcher` starts the engine, after what the script does before it."""
        if self.script_at is None:
            return f"{launcher} {self.quoted}"
        script, *words = [*self.command, *self.args][self.script_at :]
        at = launcher_at(script, engine)
        if at is None and engine in engines_started([script, *words]):
            # The author forgot the command: without one, it is a shell.
            return " ".join([launcher, script, *(quote(each, self.unsafe) for each in words)])
        if words and _ARGUMENT.search(script):
            # Only a shell of its own gives the script its arguments.
            return f"{launcher} {self.quoted}"
        if _ONE_PROGRAM.fullmatch(script.rstrip()):
            return f"{launcher} {script}"
        return f"{launcher} {self.quoted}" if at is None else f"{script[:at]}{launcher} {script[at:]}"

    def raised(self, flag: str, by: int) -> tuple[list[str], list[str]] | None:
        """`command` and `args` with each number of a flag raised by `by`; None if the flag is not given."""
        given = re.compile(rf"(?<!\S)({re.escape(flag)}[=\s]\s*)({_NUMBER.pattern})(?!\S)")
        line = [
            given.sub(lambda match: f"{match[1]}{int(match[2]) + by}", each) for each in (*self.command, *self.args)
        ]
        for index, each in enumerate(line[1:], 1):
            if line[index - 1] == flag and _NUMBER.fullmatch(each):
                line[index] = str(int(each) + by)
        if line == [*self.command, *self.args]:
            return None
        return line[: len(self.command)], line[len(self.command) :]

    @property
    def quoted(self) -> str:
        """The line as a user would type it."""
        return " ".join(quote(each, self.unsafe) for each in (*self.command, *self.args))

    def _inserted(self, script: str, flags: str, engine: str) -> str:
        """The script with the flags directly after the engine's module, if the script starts it."""
        at = flags_at(script, engine)
        if at is not None:
            return f"{script[:at]} {flags}{script[at:]}"
        raise RenderError(
            self.component,
            _PATH,
            f"is a script that does not start `python3 -m dynamo.{engine}` itself, so the platform cannot pass {flags} to "
            "the engine",
            "start the engine in the script",
        )


def read(component: str, container: KubeObject) -> CommandLine:
    """Command line of a main container. Raises RenderError if it is neither Python nor a shell with a script."""
    line = line_of(container)
    if takes_flags(line):
        return as_written(component, container)
    raise RenderError(
        component,
        _PATH,
        f"starts {program_of(line)}, to which the platform cannot add the flags of the engine",
        "set command to python3 -m dynamo.<engine>, or to a shell with a script that starts it",
    )


def as_written(component: str, container: KubeObject) -> CommandLine:
    """The line of any program, even if the platform could not add flags to it."""
    command, args = tuple(container.get("command") or ()), tuple(container.get("args") or ())
    return CommandLine(component, command, args, script_at([*command, *args]), _unsafe(container.get("env") or ()))


def quote(word: str, unsafe: Set[str] = frozenset()) -> str:
    """A word in double quotes for a shell, if it needs them; Kubernetes replaces `$(VARIABLE)`.

    Variables in `unsafe`, such as those with JSON or of a Secret, are left to the shell, which does not interpret their
    values again.
    """
    if _PLAIN.fullmatch(word):
        return word

    def escaped(match: re.Match[str]) -> str:
        if match[1] is None:
            return f"\\{match[0]}"
        name = match[1][2:-1]
        return f"${{{name}}}" if name in unsafe and name.isidentifier() else match[1]

    return f'"{_ESCAPED.sub(escaped, word)}"'


def _unsafe(variables: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Variables whose values a shell would change between quotes, or whose values only the container will know."""
    unsafe: set[str] = set()
    for each in variables:
        value, source = str(each.get("value") or ""), each.get("valueFrom") or {}
        named = (match[1] for match in _ESCAPED.finditer(value))
        changes = "'" in value or any(name is None or name[2:-1] in unsafe for name in named)
        if changes or (source and source.keys().isdisjoint(("fieldRef", "resourceFieldRef"))):
            unsafe.add(each["name"])
    return frozenset(unsafe)


def _split(script: str) -> list[str]:
    """The words of a script, without comments. A script in a word, which another shell reads, is split, too."""
    text = _COMMENT.sub(lambda match: "" if match["comment"] else match[0], script)
    if len(text) <= _READ:
        with contextlib.suppress(ValueError):
            words = shlex.split(text, comments=False)
            return [part for word in words for part in (_split(word) if _is_script(word, text) else [word])]
    return text.split()


def _is_script(word: str, text: str) -> bool:
    # A word with a no-break space is never split, however often it is read.
    return len(word) < len(text) and bool(engines_started([word]))
