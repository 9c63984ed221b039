"""The self test detects errors of the webhooks before the API server calls them."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from dynamo_admission import selftest
from dynamo_admission.callers import Callers
from dynamo_admission.metrics import AdmissionMetrics
from dynamo_admission.registration import Address
from dynamo_admission.review import World
from dynamo_admission.selftest import Listener, SelfTestFailed, self_test
from dynamo_admission.server import ReviewServer, ServerState, listening
from dynamo_devcluster.certs import CertificateAuthority
from prometheus_client import CollectorRegistry

from .reviewing import NO_TYPES

HOOKS = Address("system", "hooks")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@asynccontextmanager
async def served(
    authority: CertificateAuthority,
    app: web.Application | None = None,
    name: str = HOOKS.host,
    *,
    host: str = "127.0.0.1",
) -> AsyncIterator[Listener]:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = authority.server(name, (name,))
    tls.load_cert_chain(pair.certificate, pair.key)

    async with listening(app or reviewing(), host, 0, tls) as port:
        yield Listener(port, HOOKS, host)


def reviewing(*, max_in_flight: int = 4, callers: Callers | None = None) -> web.Application:
    state, metrics = ServerState(World(), NO_TYPES), AdmissionMetrics(CollectorRegistry())
    return ReviewServer(state, metrics, max_in_flight=max_in_flight, callers=callers).app()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_working_webhook_passes(authority, host):
    async with served(authority, host=host) as listener:
        await self_test(listener, [authority.certificate.read_bytes()], {})


async def test_an_authority_of_another_certificate_is_detected(authority, tmp_path: Path):
    other = CertificateAuthority(tmp_path).certificate.read_bytes()
    async with served(authority) as listener:
        for bundles in ([other], [authority.certificate.read_bytes(), other], [b""]):
            with pytest.raises(SelfTestFailed, match="CERTIFICATE_VERIFY_FAILED"):
                await self_test(listener, bundles, {})
        with pytest.raises(SelfTestFailed, match="cannot be read"):
            await self_test(listener, [b"junk"], {})


@pytest.mark.parametrize(
    ("given", "registered", "match"),
    [
        ({"name": "elsewhere.system.svc"}, 1, r"connecting as hooks\.system\.svc: .*is not valid for"),
        ({}, 0, "no webhook is registered"),
        ({"app": web.Application()}, 1, "/mutate answers 404"),
    ],
    ids=["another name", "no registration", "wrong path"],
)
async def test_a_webhook_that_the_api_server_could_not_call_fails(authority, given, registered, match):
    async with served(authority, **given) as listener:
        with pytest.raises(SelfTestFailed, match=match):
            await self_test(listener, [authority.certificate.read_bytes()] * registered, {})


async def test_a_webhook_that_accepts_everything_is_detected(authority, monkeypatch):
    monkeypatch.setattr(selftest, "BAD", selftest.GOOD)
    async with served(authority) as listener:
        with pytest.raises(SelfTestFailed, match="/mutate accepts an invalid graph"):
            await self_test(listener, [authority.certificate.read_bytes()], {})


async def test_a_busy_replica_passes(authority):
    """If it became unready, other busy replicas would get its share."""
    bundles, callers = [authority.certificate.read_bytes()], Callers()
    async with served(authority, reviewing(max_in_flight=0, callers=callers)) as listener:
        with pytest.raises(SelfTestFailed, match="/mutate answers 429"):
            await self_test(listener, bundles, {})
        await self_test(listener, bundles, callers.self_test)
