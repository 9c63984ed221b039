"""What `make bench-plan` rests on: results that are kept on disk, and recorded traces from a folder of one's own."""

from pathlib import Path

import pytest

from tests.benchmarks.remembered import remembered
from tests.benchmarks.traffic import TRACES_VARIABLE, traffic


def test_a_run_is_computed_once_for_each_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    computed: list[int] = []

    def run() -> dict[str, int]:
        computed.append(1)
        return {"kept": len(computed)}

    assert [remembered([seed], run) for seed in (1, 1, 2, 1)] == [{"kept": 1}, {"kept": 1}, {"kept": 2}, {"kept": 1}]


def test_recorded_traces_are_read_from_the_given_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACES_VARIABLE, str(tmp_path))
    rebuilt = traffic("azure-code", 1)
    assert rebuilt.source.startswith("rebuilt")
    (tmp_path / "azure-2023-code.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:17:03.9799600,4808,10\n"
        "2023-11-16 18:17:05.4799600,110,27\n"
    )
    recorded = traffic("azure-code", 1)
    assert recorded.source.startswith("recorded")
    assert {(request.isl, request.osl) for request in recorded.requests} == {(4808, 10), (110, 27)}
