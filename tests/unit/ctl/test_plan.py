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
    ],
)
def test_a_value_that_is_not_understood_is_a_wrong_command_line(work: Callable[[], object], said: str) -> None:
    with pytest.raises(CtlError) as refused:
        work()
    assert str(refused.value).startswith(said)
    assert refused.value.code == ExitCode.USAGE


def test_power_that_is_not_replayed_is_said(tmp_path: Path) -> None:
    file = tmp_path / "planner.yaml"
    file.write_text("{mode: disagg, enable_power_awareness: true, total_gpu_power_limit: 5200}")
    said: list[str] = []
    simulation._config(file, said.append)
    assert said == [f"{file}: total_gpu_power_limit: not replayed; what GPUs may draw is written in the graph alone"]
