"""Remembers what sweeps gave, by all that determines it: in memory, and where a folder is set, beyond the process."""

import asyncio
import contextlib
import hashlib
import json
import os
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

import structlog
from dynamo_shared.newest import Newest

from dynamo_profiler.profiling.simulation.wire import Curves, JobResult, JobStatus, SimulationSweep, answer_from

_log = structlog.get_logger(__name__)

#: Of answers: another one is not read, since it lacks what graphs are made of by now.
_FORM = 4
#: Outcomes that are so again next time; what broke may have been the machine's fault.
_LASTING = frozenset({JobStatus.FEASIBLE, JobStatus.INFEASIBLE, JobStatus.TOO_SMALL, JobStatus.UNSUPPORTED})


def key_of(job: SimulationSweep | Curves, model_digest: str = "") -> str:
    """Of all that determines an answer: the job, the release of AI Configurator, and a model's configuration where it is read."""
    text = json.dumps(
        [_FORM, job.job(), version("aiconfigurator"), version("aiconfigurator-core"), model_digest], sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()


class AnswerCache:
    """Bounded, the longest unused goes first. Files are a help, never needed: errors with them are logged, no more."""

    def __init__(self, entries: int, folder: Path | None) -> None:
        self._entries = entries
        self._folder = folder
        self._memory: Newest[str, JobResult] = Newest(entries)

    def __len__(self) -> int:
        return len(self._memory)

    async def get(self, key: str) -> JobResult | None:
        """What is remembered; None where nothing is."""
        known = self._memory.used(key)
        if known is not None or self._folder is None or not self._entries:
            return known
        known = await asyncio.to_thread(_read, self._folder / f"{key}.json")
        if known is not None:
            self._memory[key] = known
        return known

    async def put(self, key: str, answer: JobResult) -> None:
        """Remember an answer that will be the same again."""
        if answer.outcome not in _LASTING or not self._entries:
            return
        self._memory[key] = answer
        if self._folder is not None:
            await asyncio.to_thread(_write, self._folder, f"{key}.json", answer, self._entries)


def _read(path: Path) -> JobResult | None:
    try:
        answer = answer_from(json.loads(path.read_bytes()))
        os.utime(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        _log.warning("A remembered sweep cannot be read; it is computed again", path=str(path), error=str(error))
        return None
    return replace(answer, seconds=0.0)


def _write(folder: Path, name: str, answer: JobResult, entries: int) -> None:
    part = folder / f".{name}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(asdict(answer), separators=(",", ":")))
        part.replace(folder / name)
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in files[: max(0, len(files) - entries)]:
            old.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("A sweep cannot be remembered in the cache folder", folder=str(folder), error=str(error))
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
