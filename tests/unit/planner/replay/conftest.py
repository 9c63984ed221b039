"""A small profile whose figures can be checked by hand."""

import pytest
from dynamo_planner.core.profile import DecodePoint, PrefillPoint, Profile


@pytest.fixture(scope="session")
def profile() -> Profile:
    """Prompts take 10 ms and 10 ms a thousand tokens; a token takes 5 ms and 0.1 ms a sequence, whatever its length."""
    return Profile(
        prefill=tuple(PrefillPoint(isl=isl, ttft=10 + isl / 100) for isl in (100, 1000, 8000)),
        decode=tuple(
            DecodePoint(context=context, kv_tokens=batch * context, itl=5 + 0.1 * batch)
            for context in (100.0, 1000.0, 10_000.0)
            for batch in (1, 10, 100)
        ),
        max_kv_tokens=1_000_000,
    )
