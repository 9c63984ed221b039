"""The command line of `dynamoctl plan replay`."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_ctl.commands.plan import ReplayRequest, simulation
from dynamo_ctl.errors import CtlError, ExitCode


def traced(trace: str) -> ReplayRequest:
    return ReplayRequest(config=Path("config"), profiles=[], trace=trace)


def split(text: str, *, disaggregated: bool) -> Any:
    return simulation._split(text, cast("Any", SimpleNamespace(disaggregated=disaggregated)))


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: simulation._policy("greedy"), "--policy greedy: write "),
        (lambda: split("4", disaggregated=True), "--static 4: write 2P3D or best"),
        (lambda: split("2P3D", disaggregated=False), "--static 2P3D: write 4, "),
        (
            lambda: simulation._requests(traced("sine:1")),
            "--trace sine:1: write sine:LOW,HIGH,PERIOD, with numbers above 0",
        ),
        (lambda: simulation._requests(traced("constant:0")), "--trace constant:0: "),
        (
            lambda: simulation._requests(traced("constant:999999")),
            "--trace constant:999999: may have 1,799,998,200 requests, but a generated trace has at most 1,000,000; ",
        ),
        (lambda: simulation._requests(traced("ladder:1x10,2000x1000")), "--trace ladder:1x10,2000x1000: may have "),
        (lambda: simulation._requests(traced("bursts:0,1,0.000001,0")), "--trace bursts:0,1,0.000001,0: may have "),
    ],
)
def test_a_value_that_is_not_understood_is_a_wrong_command_line(work: Callable[[], object], said: str) -> None:
    with pytest.raises(CtlError) as refused:
        work()
    assert str(refused.value).startswith(said)
    assert refused.value.code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must have exactly one object: a PlannerConfig"),
        ("a:\n\tb: 1", "is not valid YAML: line 2, column 1: "),
        ("{apiVersion: v1, kind: ConfigMap}", "is a manifest of kind ConfigMap, not a PlannerConfig"),
    ],
)
def test_a_file_that_is_not_a_configuration_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "planner.yaml"
    file.write_text(text)
    with pytest.raises(CtlError) as refused:
        simulation._config(file, print)
    assert str(refused.value).startswith(f"{file}: {said}")


def test_a_report_that_cannot_be_written_is_refused_before_the_replay(tmp_path: Path) -> None:
    asked = ReplayRequest(config=Path("none"), profiles=[], trace="constant:1", output=tmp_path / "none" / "r.html")
    with pytest.raises(CtlError, match=f"--output {asked.output}: there is no folder {tmp_path / 'none'}"):
        simulation.run(asked, print, print)


def test_a_power_limit_that_is_not_replayed_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "planner.yaml"
    file.write_text("{mode: disagg, enable_power_awareness: true, total_gpu_power_limit: 5200}")
    said: list[str] = []
    simulation._config(file, said.append)
    assert said == [f"{file}: total_gpu_power_limit: not replayed; only the graph has the power limits of GPUs"]
