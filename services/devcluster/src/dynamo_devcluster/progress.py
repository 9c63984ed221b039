"""Progress reports of long steps (downloads, builds)."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO


class Progress:
    """The interface of progress reports; this class shows nothing. Methods are called in the event loop's thread and
    must not block.
    """

    def started(self, step: str) -> None:
        """Begin `step`, for example "building kube-apiserver 1.35.4"."""

    def advanced(self, step: str, done: int, total: int, unit: str) -> None:
        """Count `done` of at most `total` `unit`s; total is 0 if unknown."""

    def finished(self, step: str, seconds: float) -> None:
        """End `step` after `seconds`."""

    def failed(self, step: str) -> None:
        """End `step` without success."""


@contextlib.contextmanager
def step(progress: Progress, name: str) -> Iterator[None]:
    """A step that lasts as long as the block; a failed step is not shown as finished."""
    begun = time.monotonic()
    progress.started(name)
    try:
        yield
    except BaseException:
        progress.failed(name)
        raise
    progress.finished(name, time.monotonic() - begun)


class LineProgress(Progress):
    """Prints one line at most every `every` seconds, for logs and terminals alike."""

    def __init__(
        self, stream: TextIO | None = None, every: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._every = every
        self._clock = clock
        self._begun: dict[str, float] = {}
        self._counts: dict[tuple[str, str], tuple[float, int]] = {}
        self._shown = 0.0

    def started(self, step: str) -> None:
        """Print the step."""
        self._begun[step] = self._shown = self._clock()
        self._print(f"{step} ...")

    def advanced(self, step: str, done: int, total: int, unit: str) -> None:
        """Print the count and the estimated remaining time, unless a line was printed recently."""
        now = self._clock()
        since, already = self._counts.setdefault((step, unit), (now, done))
        if now - self._shown < self._every:
            return
        self._shown = now
        count = f"{done}/{total}" if total else str(done)
        line = f"{step}: {unit} {count}, {now - self._begun.get(step, now):.0f} s"
        if total and done > already:
            # The rate since the first count, because work before it is not counted.
            line += f", about {(total - done) * (now - since) / (done - already):.0f} s more"
        self._print(line)

    def finished(self, step: str, seconds: float) -> None:
        """Print the duration."""
        self._begun.pop(step, None)
        self._counts = {key: count for key, count in self._counts.items() if key[0] != step}
        self._print(f"{step}: done in {seconds:.1f} s")

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)
