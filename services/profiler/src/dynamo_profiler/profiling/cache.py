"""Caches answers of sweeps by all their inputs: in memory and, if a folder is configured, on disk."""

import asyncio
import contextlib
import hashlib
import json
import os
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import structlog
from dynamo_shared.lru import LruCache

from dynamo_profiler.profiling.simulation.wire import Curves, JobResult, JobStatus, SimulationSweep, answer_from

_log = structlog.get_logger(__name__)

#: Format of answers. Answers in another format are ignored, because they lack fields that graphs need now.
_FORM = 4
#: Outcomes that would repeat. A broken job may have been the machine's fault.
_LASTING = frozenset({JobStatus.FEASIBLE, JobStatus.INFEASIBLE, JobStatus.TOO_SMALL, JobStatus.UNSUPPORTED})


def key_of(job: SimulationSweep | Curves, model_digest: str = "") -> str:
    """The key of all inputs of an answer: the job, the release of AI Configurator, and the configuration of a model if
    the platform read it.
    """
    text = json.dumps(
        [_FORM, job.job(), version("aiconfigurator"), version("aiconfigurator-core"), model_digest], sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()


class AnswerCache:
    """A bounded cache that evicts the least recently used answer. Errors with files are only logged."""

    def __init__(self, entries: int, folder: Path | None) -> None:
        self._entries = entries
        self._folder = folder
        self._memory: LruCache[str, JobResult] = LruCache(entries)

    def __len__(self) -> int:
        return len(self._memory)

    async def get(self, key: str) -> JobResult | None:
        """The cached answer, or None."""
        known = self._memory.touch(key)
        if known is not None or self._folder is None or not self._entries:
            return known
        known = await asyncio.to_thread(_read, self._folder / f"{key}.json")
        if known is not None:
            self._memory[key] = known
        return known

    async def put(self, key: str, answer: JobResult) -> None:
        """Cache an answer that would repeat."""
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
        _log.warning("cannot read a cached sweep; computing the sweep again", path=str(path), error=str(error))
        return None
    return replace(answer, seconds=0.0)


def _write(folder: Path, name: str, answer: JobResult, entries: int) -> None:
    # Containers that share a volume have the same process ids.
    part = folder / f".{name}.{uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(asdict(answer), separators=(",", ":")))
        part.replace(folder / name)
        _evict(folder, entries)
    except OSError as error:
        _log.warning("cannot store a sweep in the cache folder", folder=str(folder), error=str(error))
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _evict(folder: Path, entries: int) -> None:
    changed: dict[Path, float] = {}
    for path in folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):  # another write evicts at the same time
            changed[path] = path.stat().st_mtime
    for old in sorted(changed, key=changed.__getitem__)[: max(0, len(changed) - entries)]:
        old.unlink(missing_ok=True)
