"""Each benchmark finishes at its smallest size, and prints its figures; what they are depends on the machine."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.benchmarks.estimator import PROFILES

ROOT = Path(__file__).parents[2]
#: Arguments of each benchmark, and a text of its last line.
RUNS = {
    # Fewer requests than may be in progress at once, so that none is refused on a slow machine.
    "admission": ("--rate 60 --seconds 1", "convert_p99_ms="),
    "bus": ("-n 20 --events 5", "objects_per_s="),
    "dynadmin": ("--graphs 3 --streams 2 --rounds 1 --no-estimates", "deploy_p50_ms="),
    "estimator": ("--measured", "goals (interior)"),
    "mocker": ("--load 12x1 --seconds 1", "furthest apart"),
    "models": ("-n 3", "left=0"),
    "ready": ("-n 1", "p50_create_to_successful_s="),
    "reconcile": ("-n 1 --alone 1", "api_writes_per_dgd="),
    "relist": ("-n 1", "worst_s="),
    "render": ("", "25 components, 78 objects"),
    "rows": ("-n 100", "ledger_bytes="),
    "scale": ("-n 2 --samples 1 --bursts 1", "writes_per_scaling="),
    "ticks": ("--traffic steady", "planned graphs a core"),
}
#: They take minutes of processor time, or need root.
LEFT_OUT = {"build", "plan", "rapid", "size"}


def test_every_benchmark_of_the_makefile_is_here_or_left_out() -> None:
    modules = re.findall(r"^bench-\S+:.*\n\t.* -m tests\.benchmarks\.(\w+)", (ROOT / "Makefile").read_text(), re.M)
    assert sorted(modules) == sorted([*RUNS, *LEFT_OUT])


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", RUNS)
async def test_a_benchmark_prints_its_figures(name: str, request: pytest.FixtureRequest) -> None:
    if name == "mocker":
        request.getfixturevalue("dynamo_runtime")
    if name in {"estimator", "mocker"} and not PROFILES.is_dir():
        pytest.skip(f"no measured profiles at {PROFILES}: shared/ is not next to this checkout")
    arguments, figure = RUNS[name]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"tests.benchmarks.{name}", *arguments.split()),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    # Some end with 1 if a goal is missed, as on a busy machine.
    last = output.decode().rstrip().rpartition("\n")[2]
    assert figure in last, (output + errors).decode()[-4000:]
