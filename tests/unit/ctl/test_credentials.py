"""Passwords of local servers: random, reused, and readable only by their owner."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from dynamo_ctl import credentials
from dynamo_ctl.cli import app
from typer.testing import CliRunner


def test_passwords_are_kept_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "nats"
    first = credentials.load_or_create(folder, ["a", "b"])
    assert credentials.load_or_create(folder, ["b", "c"])["b"] == first["b"]
    assert len(set(first.values())) == 2
    assert all(len(each) == 40 and each[0].isalpha() and each.isalnum() for each in first.values())
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("strict_umask")
def test_group_files_are_readable_for_the_group_with_any_umask(tmp_path: Path) -> None:
    """Also the files of an earlier call that only the owner could read, and the folder, which must be readable, too."""
    arguments = ["nats-config", "--users", "watcher", "--dir"]
    for folder, before in ((tmp_path / "new", []), (tmp_path / "old", [arguments])):
        for each in (*before, [*arguments[:3], "--group-readable", "--dir"]):
            assert CliRunner().invoke(app, [*each, str(folder)]).exit_code == 0
        assert {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()} == {
            "nats.conf": 0o640,
            "watcher": 0o640,
        }
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o750


def test_a_secret_is_not_written_through_a_link_of_another_user(tmp_path: Path) -> None:
    """In a folder to which other users may write. A file that already exists does not determine the permissions."""
    (elsewhere := tmp_path / "elsewhere").write_text("")
    (tmp_path / f".secret.{os.getpid()}").symlink_to(elsewhere)
    credentials.write(tmp_path / "secret", "s3cret")
    assert (elsewhere.read_text(), (tmp_path / "secret").is_symlink()) == ("", False)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_nothing_is_left_of_a_secret_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    with pytest.raises(OSError, match="secret"):
        credentials.write(tmp_path / "secret", "s3cret")
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


def test_a_configuration_for_a_server_with_passwords_from_its_environment() -> None:
    result = CliRunner().invoke(app, ["nats-config", "--users", "watcher,integrator", "--cluster", "prod"])
    assert result.exit_code == 0
    assert "password: $NATS_PASSWORD_WATCHER\n" in result.stdout
    assert '"dynamo.evt.v1.prod.>"' in result.stdout
    assert "pod-builder" not in result.stdout


def test_a_configuration_with_its_password_files(tmp_path: Path) -> None:
    arguments = ["nats-config", "--dir", str(tmp_path / "n"), "--tls", "/tls/crt,/tls/key,/tls/ca"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    text = (tmp_path / "n" / "nats.conf").read_text()
    assert (tmp_path / "n" / "planner").read_text().strip() in text
    assert 'ca_file: "/tls/ca"\n  verify: true' in text
    assert (tmp_path / "n" / "nats.conf").stat().st_mode & 0o777 == 0o600


def test_wrong_options_of_nats_config_are_refused_with_the_reason() -> None:
    unknown = CliRunner().invoke(app, ["nats-config", "--users", "root"])
    assert "unknown users root; use some of watcher," in str(unknown.exception)
    assert "write CERT,KEY" in str(CliRunner().invoke(app, ["nats-config", "--tls", "x"]).exception)


@pytest.mark.parametrize("option", ["--listen", "--monitoring"])
@pytest.mark.parametrize(
    "address", ["foo", "4222", "0.0.0.0", "h:port", "h:70000", "nats://h:4222", "me@h:4222", "h:1/x"]
)
def test_an_address_that_no_server_takes_is_refused(option: str, address: str, tmp_path: Path) -> None:
    """The server would not start with it, and its error message is less clear."""
    result = CliRunner().invoke(app, ["nats-config", "--dir", str(tmp_path / "n"), option, address])
    assert f"{option}: {address!r} is not an address; write HOST:PORT" in str(result.exception)
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize("address", ["0.0.0.0:4222", ":4222", "[::1]:4222", "nats.example:4222"])
def test_addresses_that_a_server_takes(address: str) -> None:
    result = CliRunner().invoke(app, ["nats-config", "--listen", address])
    assert f'listen: "{address}"' in result.stdout
