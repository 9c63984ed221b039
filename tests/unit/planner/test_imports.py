"""Numerical libraries take 50 MiB: a planner that plans no graph does without."""

import subprocess
import sys

CODE = """
import sys
import dynamo_planner.app
loaded = {"numpy", "scipy"} & set(sys.modules)
assert not loaded, loaded
"""


def test_service_starts_without_numerical_libraries() -> None:
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
