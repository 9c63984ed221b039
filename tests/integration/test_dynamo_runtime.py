"""The environment of the real runtime: made once, never half, and what is said where it cannot be made."""

from pathlib import Path

import pytest

from tests.dynamo_runtime import environment as environments
from tests.dynamo_runtime.environment import REQUIREMENTS, RuntimeUnavailableError, environment_of, obtain


async def test_without_packages_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(
        RuntimeUnavailableError, match=r"(?s)could not install dynamo-runtime\.txt.*PIP_INDEX_URL"
    ) as caught:
        await obtain(cache=tmp_path)
    assert "PIP_FIND_LINKS" in str(caught.value)
    # What is half made is not taken for whole: the next try begins again.
    assert not (environment_of(cache=tmp_path).root / ".complete").exists()


async def test_an_install_that_hangs_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "INSTALLS_WITHIN", 0.01)
    with pytest.raises(RuntimeUnavailableError, match="not done after"):
        await obtain(cache=tmp_path)


def test_every_package_is_pinned_and_hashed() -> None:
    lines = REQUIREMENTS.read_text().replace("\\\n", "").splitlines()
    assert len(lines) > 20
    assert all("==" in line and "--hash=sha256:" in line for line in lines)
