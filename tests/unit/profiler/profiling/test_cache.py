"""The cached answers of sweeps."""

from pathlib import Path

import pytest
from dynamo_profiler.profiling.cache import AnswerCache
from dynamo_profiler.profiling.simulation.wire import JobResult, JobStatus


async def test_processes_with_the_same_id_do_not_write_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In containers that share a volume: the text of both was mixed."""
    parts: list[Path] = []
    write = Path.write_text

    def noted(path: Path, text: str) -> int:
        parts.append(path)
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", noted)
    for _ in range(2):
        await AnswerCache(1, tmp_path).put("key", JobResult(outcome=JobStatus.INFEASIBLE))
    assert len(set(parts)) == 2
    assert await AnswerCache(1, tmp_path).get("key") is not None
