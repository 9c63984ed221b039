"""NATS options: contradictions are rejected, secrets are not shown."""

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.nats import NatsOptions
from dynamo_shared.bus.nats.client import NatsClient
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


#: A key of the documentation of NATS.
SEED, PUBLIC = (
    "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY",
    "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4",
)
CREDENTIALS = """-----BEGIN NATS USER JWT-----
e30.e30.sig
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
{}
------END USER NKEY SEED------
"""


@pytest.mark.parametrize(
    ("option", "text", "shown"),
    [
        ("nkey_seed_file", f"{SEED}\n", {"nkey": PUBLIC}),
        ("credentials_file", CREDENTIALS.format(SEED), {"jwt": "e30.e30.sig"}),
    ],
)
async def test_a_client_signs_with_the_nkey_of_a_file(option: str, text: str, shown: Any, tmp_path: Path) -> None:
    """These options had never worked: nats-py imported a package that is not installed."""
    (file := tmp_path / "user").write_text(text)
    options: dict[str, Any] = {option: file}
    with pytest.raises(BusUnavailableError, match=r"refused|onnect"):
        await NatsSession.open(NatsOptions(**options), "nats://127.0.0.1:1")
    client = NatsClient(tls=False)
    client._user_credentials = str(file) if option == "credentials_file" else None
    client._nkeys_seed = str(file)
    client._setup_nkeys_connect()
    client._auth_configured, client._server_info = True, {"nonce": "n", "headers": True}
    client.options |= {"verbose": False, "pedantic": False, "token": None, "name": None, "no_echo": False}
    sent = msgspec.json.decode(client._connect_command().removeprefix(b"CONNECT "))
    assert shown.items() <= sent.items()
    public = base64.b32decode(PUBLIC)[1:-2]
    Ed25519PublicKey.from_public_bytes(public).verify(base64.b64decode(sent["sig"]), b"n")


@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("nkey_seed_file", SEED[:-1], "begins with SU"),
        ("nkey_seed_file", f"{SEED[:20]}A{SEED[21:]}", "begins with SU"),
        ("nkey_seed_file", f"SO{SEED[2:]}", "begins with SU"),
        ("nkey_seed_file", "hush!", "begins with SU"),
        ("credentials_file", "hush", "no NATS USER JWT"),
        ("credentials_file", CREDENTIALS.format("hush"), "begins with SU"),
    ],
)
async def test_an_invalid_nkey_is_reported_and_not_shown(option: str, text: str, says: str, tmp_path: Path) -> None:
    """The service's health said only that it was not connected yet."""
    (file := tmp_path / "user").write_text(text)
    options: dict[str, Any] = {option: file}
    with pytest.raises(BusUnavailableError, match=says) as caught:
        await NatsSession.open(NatsOptions(**options), "nats://127.0.0.1:1")
    assert text not in str(caught.value)
