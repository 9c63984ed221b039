"""The environment of the real runtime is installed once and never partially; errors say what to do."""

from pathlib import Path

import pytest

from tests.dynamo_runtime import environment as environments
from tests.dynamo_runtime.environment import REQUIREMENTS, RuntimeUnavailableError, environment_of, obtain


async def test_missing_packages_give_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(
        RuntimeUnavailableError, match=r"(?s)could not install dynamo-runtime\.txt.*PIP_INDEX_URL"
    ) as caught:
        await obtain(cache=tmp_path)
    assert "PIP_FIND_LINKS" in str(caught.value)
    # An incomplete environment is not used: the next attempt starts from scratch.
    assert not (environment_of(cache=tmp_path).root / ".complete").exists()


async def test_a_hanging_installation_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "INSTALLS_WITHIN", 0.01)
    with pytest.raises(RuntimeUnavailableError, match="not done after"):
        await obtain(cache=tmp_path)


def test_every_package_is_pinned_and_hashed() -> None:
    lines = REQUIREMENTS.read_text().replace("\\\n", "").splitlines()
    assert len(lines) > 20
    assert all("==" in line and "--hash=sha256:" in line for line in lines)
