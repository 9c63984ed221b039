"""Modules that commands must not import, because imports take seconds on a busy machine."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "vllm-agg.yaml"
CODE = """
import sys
from dynamo_ctl.__main__ import main
unused = set(sys.argv.pop(1).split(","))
try:
    main()
except SystemExit:
    pass
assert not unused & set(sys.modules), unused & set(sys.modules)
"""
SERVICES = (
    "nats,prometheus_client,aiohttp.web,etcd3,grpc,dynamo_shared.runtime.settings,dynamo_shared.runtime.controller"
)


@pytest.mark.parametrize(
    ("unused", "command"),
    [
        (f"pydantic,aiohttp,structlog,rich,{SERVICES}", ["--help"]),
        (f"rich,{SERVICES}", ["get"]),
        (f"rich,{SERVICES}", ["logs", "a"]),
        ("rich,nats,aiohttp.web,etcd3,grpc,dynamo_shared.runtime.controller", ["render", str(EXAMPLE)]),
        ("rich", ["run", "all"]),
    ],
)
def test_a_command_loads_nothing_that_it_has_no_use_for(unused: str, command: list[str], tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", CODE, unused, *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr[-500:]
