"""The measured profiles that are available to the project."""

from pathlib import Path

import pytest
from dynamo_planner.core.profile import Profile
from dynamo_planner.profile_files import read_profile

PROFILES = Path(__file__).resolve().parents[5] / "shared" / "planning" / "profiles"
NAMES = ("h200-tp1", "h200-llama-3.1-8b-fp8")


@pytest.fixture(scope="session")
def measured() -> dict[str, Profile]:
    if not PROFILES.is_dir():
        pytest.skip(f"no measured profiles at {PROFILES}: shared/ is not next to this checkout")
    return {name: read_profile([PROFILES / f"{name}-prefill.npz", PROFILES / f"{name}-decode.npz"]) for name in NAMES}
