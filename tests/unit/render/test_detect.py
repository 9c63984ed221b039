from typing import Any

import pytest
from dynamo_pod_builder.render.backends.detect import detect
from dynamo_shared.api.engines.started import script_at


@pytest.mark.parametrize(
    ("container", "engines"),
    [
        ({"command": ["python3", "-m", "dynamo.vllm"]}, {"vllm"}),
        ({"command": ["python3"], "args": ["-m", "dynamo.sglang", "--x"]}, {"sglang"}),
        ({"command": ["/bin/sh", "-c"], "args": ["cd /x && exec python3.11 -u -m dynamo.trtllm --a"]}, {"trtllm"}),
        ({"command": ["/bin/sh", "-c"], "args": ["a\nb\npython3 -m dynamo.vllm --model x\n"]}, {"vllm"}),
        ({"command": ["python3", "-m", "dynamo.mocker"]}, set()),
        ({"command": ["python3", "-m", "dynamo.frontend"]}, set()),
        ({"args": ["echo dynamo.vllm"]}, set()),
        ({"args": ["python3 run.py | grep -m dynamo.vllm"]}, set()),
        ({"args": ["python3 -m dynamo.vllm & python3 -m dynamo.sglang"]}, {"vllm", "sglang"}),
        ({"args": ["python3 -m dynamo.vllm --a & python3 -m dynamo.vllm --b"]}, {"vllm"}),
        ({}, set()),
        (None, set()),
    ],
)
def test_engines_of_a_command(container: dict[str, Any] | None, engines: set[str]) -> None:
    assert detect(container) == engines


def test_long_scripts_take_linear_time() -> None:
    script = "python3 -m x " * 20_000 + "dynamo."
    # With one backtracking expression this would exceed the time-out of any test.
    assert detect({"args": [script]}) == set()


@pytest.mark.parametrize(
    ("switch", "at"),
    [("-c", 2), ("-lc", 2), ("-ec", 2), ("-cx", 2), ("-cc", 2), ("-l", None), ("-", None), ("-C", None)],
)
def test_the_script_of_a_shell_follows_its_switch(switch: str, at: int | None) -> None:
    assert script_at(["sh", switch, "exit"]) == at


@pytest.mark.parametrize(
    ("options", "at"),
    [
        (["-c", "--"], 3),
        (["-c", "-"], 3),
        (["-c", "-e"], 3),
        (["-c", "+x", "-u", "--"], 5),
        (["-c", "-o", "pipefail"], 4),
        (["-ceo", "pipefail"], 3),
        (["-eo", "pipefail", "-c"], 4),
    ],
)
def test_options_of_a_shell_may_follow_the_switch(options: list[str], at: int) -> None:
    assert script_at(["bash", *options, "exit", "0"]) == at
    assert script_at(["bash", *options]) is None


def test_long_switches_take_linear_time() -> None:
    """One of a megabyte stopped the webhook and the pod-builder for hours."""
    assert script_at(["sh", f"-{'c' * 1_000_000}1", "exit"]) is None
