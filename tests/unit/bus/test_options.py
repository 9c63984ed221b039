"""NATS options: contradictions are rejected, secrets are not shown."""

from pathlib import Path
from typing import Any

import pytest
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.nats import NatsOptions
from dynamo_shared.bus.nats.options import BusOptionsError
from dynamo_shared.bus.nats.session import NatsSession


def test_secrets_are_not_in_the_repr() -> None:
    shown = repr(NatsOptions(user="u", password="hush")) + repr(NatsOptions(token="hush"))
    assert "hush" not in shown


@pytest.mark.parametrize(
    "arguments",
    [
        {"servers": ("nats://user:hush@host:4222",)},
        {"servers": ()},
        {"user": "u", "password": "hush", "token": "hush"},
        {"cert_file": Path("/nowhere/cert")},
        {"ca_file": Path("/nowhere/ca")},
        {"user": "u", "password_file": Path("/nowhere/password")},
        {"token": "hush", "token_file": Path(__file__), "user": "u"},
    ],
)
def test_options_that_cannot_work_are_rejected_without_showing_secrets(arguments: dict[str, Any]) -> None:
    with pytest.raises(BusOptionsError) as caught:
        NatsOptions(**arguments)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("name", ["password", "token"])
async def test_a_rotated_secret_is_read_for_the_next_connection(name: str, tmp_path: Path) -> None:
    (file := tmp_path / name).write_text("old\n")
    user: dict[str, Any] = {"user": "u"} if name == "password" else {}
    arguments: dict[str, Any] = {**user, f"{name}_file": file}
    options = NatsOptions(**arguments)
    assert options.identity() == {**user, name: "old"}
    file.write_text("new\n")
    assert options.identity() == {**user, name: "new"}
    file.unlink()
    with pytest.raises(BusUnavailableError, match=f"cannot read file for NATS: {file}: No such file"):
        await NatsSession.open(options, "nats://127.0.0.1:1")


async def test_unreadable_ca_files_are_read_again_later(tmp_path: Path) -> None:
    """The service's health said only that it was not connected yet."""
    (file := tmp_path / "ca.crt").write_text("half of it")
    with pytest.raises(BusUnavailableError, match="cannot load TLS files for NATS"):
        await NatsSession.open(NatsOptions(ca_file=file), "tls://127.0.0.1:1")
