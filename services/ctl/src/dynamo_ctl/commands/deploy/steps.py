"""Progress on standard error: one changing line on a terminal, a line for each step elsewhere."""

import re
import shutil
import sys
from typing import Self

from dynamo_shared.api.untrusted.words import escaped

from dynamo_ctl.output import Print

_CLEAR = "\r\x1b[K"


class Steps:
    """Shows texts. Texts that differ only in numbers belong to one step. Clears a terminal's line at the end."""

    def __init__(self, remark: Print) -> None:
        self._remark = remark
        self._terminal = sys.stderr.isatty()
        self._said = set[str]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            self._write("")

    def say(self, text: str) -> None:
        """Show a text."""
        if self._terminal:
            # A longer line would wrap, and its first part would stay.
            self._write(escaped(text)[: shutil.get_terminal_size().columns - 1])
        elif (step := re.sub(r"\d+", "", text)) not in self._said:
            self._said.add(step)
            self._remark(text)

    def _write(self, text: str) -> None:
        sys.stderr.write(_CLEAR + text)
        sys.stderr.flush()
