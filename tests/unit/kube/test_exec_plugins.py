"""Logins by exec plugins: when a plugin runs again, what it returns, and what it leaves behind."""

import asyncio
import json
import os
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from dynamo_devcluster.certs import CertificateAuthority
from dynamo_shared.aio import ended
from dynamo_shared.kube import ConfigError
from dynamo_shared.kube.config import load
from dynamo_shared.kube.credentials import LoginCredentials
from dynamo_shared.x509 import make_authority, make_leaf, subject

from tests.building.waiting import turns, until

from .users import by_plugin

#: Starts a script with this Python; the first line of a script cannot have a path with a space.
START = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
"""
PLUGIN = (
    START
    + """
import json, os, pathlib
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
runs = pathlib.Path({runs!r})
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
given = {{"token": "token-" + str(len(runs.read_text())), **json.loads({status!r})}}
status = {{name: value for name, value in given.items() if value is not None}}
print(json.dumps({{"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}}))
"""
)
PLUGIN_READS = (
    START
    + """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
token = str(info["spec"]["interactive"]) + "-" + sys.stdin.read()
print(json.dumps({{"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": {{"token": token}}}}))
"""
)


@pytest.fixture
def plugin(tmp_path: Path) -> Any:
    def plugin(**status: Any) -> dict[str, Any]:
        path = tmp_path / "plugin"
        path.write_text(PLUGIN.format(python=sys.executable, runs=str(tmp_path / "runs"), status=json.dumps(status)))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return by_plugin(str(path), "login")

    return plugin


async def test_an_exec_plugin_runs_again_when_its_token_expires(write: Any, plugin: Any) -> None:
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 30))
    credentials = (await load(write(plugin(expirationTimestamp=soon)), environ={})).credentials
    assert isinstance(credentials, LoginCredentials)
    assert credentials.authorization == "Bearer token-1"
    assert credentials.stale()
    assert await credentials.refresh()
    assert credentials.authorization == "Bearer token-2"


async def test_an_exec_plugin_runs_again_when_its_token_is_rejected_but_not_for_each_request(
    write: Any, plugin: Any
) -> None:
    credentials = (await load(write(plugin()), environ={})).credentials
    assert not credentials.stale()
    assert not await credentials.refresh()
    assert await credentials.refresh(force=True)
    assert not await credentials.refresh(force=True)
    assert credentials.authorization == "Bearer token-2"


async def test_a_valid_token_is_used_while_the_plugin_fails_or_returns_no_newer_one(
    write: Any, plugin: Any, tmp_path: Path
) -> None:
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 30))
    credentials = (await load(write(plugin(token="kept", expirationTimestamp=soon)), environ={})).credentials
    assert await credentials.refresh()
    assert not credentials.stale(), "plugins that keep their token until its end are not run for each request"
    broken = (await load(write(plugin(expirationTimestamp=soon)), environ={})).credentials
    (tmp_path / "plugin").write_text("#!/bin/sh\nexit 3\n")
    assert broken.stale()
    assert not await broken.refresh()
    assert broken.authorization == "Bearer token-3"
    with pytest.raises(Exception, match="process returned 3"):
        await broken.refresh(force=True)


async def test_a_failed_login_fails_all_waiting_requests_and_is_not_repeated_for_each() -> None:
    """A plugin may take a minute to fail. One run after the other, for each request, blocked all requests for hours."""
    runs = 0

    async def login() -> Any:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0)
        raise TimeoutError

    credentials = LoginCredentials(login, "Bearer old", time.time() - 1)
    together = await asyncio.gather(*(credentials.refresh() for _ in range(5)), return_exceptions=True)
    assert {str(each) for each in together} == {"login to the cluster took longer than 60 s"}
    assert credentials.stale()
    with pytest.raises(ConfigError, match="login to the cluster took"):
        await credentials.refresh()
    assert runs == 1


async def test_a_login_continues_when_the_request_that_started_it_times_out() -> None:
    """A plugin slower than a request was started again by each request, and never finished."""
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def login() -> Any:
        return await answer, None, None

    credentials = LoginCredentials(login, "Bearer old", time.time() - 1)
    first = asyncio.create_task(credentials.refresh())
    await asyncio.sleep(0)
    await ended(first)
    second = asyncio.create_task(credentials.refresh())
    await asyncio.sleep(0)
    answer.set_result("Bearer new")
    assert await second
    assert credentials.authorization == "Bearer new"


async def test_an_exec_plugin_may_return_a_certificate(
    write: Any, plugin: Any, authority: CertificateAuthority
) -> None:
    pair = authority.client("plugin-user")
    user = plugin(token=None, clientCertificateData=pair.certificate.read_text(), clientKeyData=pair.key.read_text())
    connection = await load(write(user), environ={})
    assert connection.credentials.authorization is None
    assert connection.tls is not None


@pytest.mark.parametrize(("lasts", "stale"), [(30, True), (3600, False)])
async def test_the_certificate_of_an_exec_plugin_has_its_own_expiry(
    write: Any, plugin: Any, lasts: float, stale: bool
) -> None:
    """The plugin ran again only after the API server had rejected a request."""
    now = time.time()
    signer, key = make_authority(now, 86400, "plugins")
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    private = cast(ec.EllipticCurvePrivateKey, load_pem_private_key(key, None))
    leaf, leaf_key = make_leaf(signer, private, subject("ann"), names=(), now=now, validity=lasts, uses=uses)
    certificate = leaf.public_bytes(Encoding.PEM).decode()
    user = plugin(token=None, clientCertificateData=certificate, clientKeyData=leaf_key.decode())
    assert (await load(write(user), environ={})).credentials.stale() == stale


async def test_a_login_that_returns_an_expired_token_is_not_repeated_for_each_request() -> None:
    """The plugin's clock or this one is wrong: the API server decides whether the token is valid."""
    runs = 0

    async def login() -> Any:
        nonlocal runs
        runs += 1
        return f"Bearer {runs}", time.time() - 1, None

    credentials = LoginCredentials(login, "Bearer 0", time.time() - 1)
    assert credentials.stale()
    assert await credentials.refresh()
    assert not credentials.stale()
    assert await credentials.refresh(force=True), "after a refusal"
    assert (credentials.authorization, runs) == ("Bearer 2", 2)


async def test_the_key_of_a_failed_login_leaves_no_file(
    write: Any, plugin: Any, authority: CertificateAuthority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = authority.client("plugin-user")
    user = plugin(token=None, clientCertificateData=pair.certificate.read_text(), clientKeyData=pair.key.read_text())
    path = write(user, **{"certificate-authority": str(tmp_path / "none")})
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pytest.raises(ConfigError, match="none"):
        await load(path, environ={})
    assert list(folder.iterdir()) == []


async def test_a_plugin_ends_with_the_login_that_runs_it(write: Any, tmp_path: Path) -> None:
    """A hanging plugin was left behind by each attempt and outlived the platform, and so did children of a script."""
    os.mkfifo(held := tmp_path / "held")
    script = f"exec 9> {held}; sleep 600 & wait"
    login = asyncio.create_task(load(write(by_plugin("/bin/sh", "-c", script)), environ={}))
    with await asyncio.to_thread(held.open, "rb", 0) as reader:
        os.set_blocking(reader.fileno(), False)
        # The login waits for the plugin's output. Before that, the plugin ends as well.
        await turns(100)
        await ended(login)
        await until(lambda: reader.read() == b"")


async def test_a_plugin_does_not_read_the_stdin_of_the_platform(write: Any, tmp_path: Path) -> None:
    """For example manifests in `dynamoctl apply -f -`, whose stdin is not a terminal."""
    (plugin := tmp_path / "plugin").write_text(PLUGIN_READS.format(python=sys.executable))
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    read, written = os.pipe()
    os.write(written, b"manifests")
    before = os.dup(0)
    os.dup2(read, 0)
    try:
        async with asyncio.timeout(60):
            credentials = (await load(write(by_plugin(str(plugin))), environ={})).credentials
    finally:
        os.dup2(before, 0)
        for each in (read, written, before):
            os.close(each)
    assert credentials.authorization == "Bearer False-"
