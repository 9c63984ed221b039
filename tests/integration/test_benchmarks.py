"""The benchmark of admission still measures what it says: it fails if reviews are refused."""

import asyncio
import sys

import pytest

pytestmark = pytest.mark.long


async def test_reviews_of_the_benchmark_are_allowed() -> None:
    # Fewer requests than may be in progress at once, so that none is refused on a slow machine.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks.admission", "--rate", "60", "--seconds", "1"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-2000:]
    assert "validate_p50_ms=" in output.decode()
