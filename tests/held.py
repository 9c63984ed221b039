"""Prints checks as numbered lines with their results, and a summary at the end."""

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager


class Held:
    """Counts checks. A failed one is reported, and the others go on."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self.checked = 0
        self.failed: list[str] = []

    @contextmanager
    def check(self, what: str) -> Iterator[list[str]]:
        """A check; strings that are appended to the yielded list are printed with it."""
        self.checked += 1
        number, begun, object_annotations = self.checked, time.monotonic(), list[str]()
        try:
            yield object_annotations
        except Exception as error:  # any failure of a check is its result
            self.failed.append(what)
            traceback.print_exc()
            reason = " ".join(str(error).split())[:400] or type(error).__name__
            print(f"{number:2} NOT HELD {what}: {reason}", flush=True)
        else:
            said = "".join(f"; {note}" for note in object_annotations)
            print(f"{number:2} held     {what} ({time.monotonic() - begun:.1f} s{said})", flush=True)

    def end(self) -> int:
        """Print the last line; returns the exit code."""
        for what in self.failed:
            print(f"not held: {what}")
        print(f"{self._subject} {self.checked - len(self.failed)}/{self.checked} held", flush=True)
        return 1 if self.failed else 0
