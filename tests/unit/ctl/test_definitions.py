"""`dynamoctl crds --install` while the API server does not answer yet."""

import pytest
from dynamo_ctl.commands.crds import definitions
from dynamo_shared.kube.errors import Unavailable


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outcomes of the attempts: the third one succeeds."""
    made: list[str] = []

    async def install(*_: object) -> list[str]:
        made.append("attempt")
        if len(made) < 3:
            raise Unavailable(0, "ConnectionRefused", "nothing listens")
        return ["definition"]

    monkeypatch.setattr(definitions, "_install", install)
    monkeypatch.setattr(definitions, "FIRST_RETRY", 0.001)
    return made


async def test_the_installation_of_definitions_waits_for_the_api_server(
    attempts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert await definitions.install_definitions(wait=60) == ["definition"]
    assert len(attempts) == 3
    said = "dynamoctl: the cluster does not answer: nothing listens; retrying\n"
    assert capsys.readouterr().err == said


async def test_without_a_wait_the_installation_fails_at_the_first_attempt(attempts: list[str]) -> None:
    with pytest.raises(Unavailable):
        await definitions.install_definitions()
    assert len(attempts) == 1
