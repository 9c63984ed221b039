"""A process survives failing services and missing servers, reports its health, and shuts down in order."""

import asyncio
import contextlib
import ssl
from pathlib import Path

import aiohttp
import pytest
from dynamo_devcluster.certs import CertificateAuthority
from dynamo_shared.aio import supervision
from dynamo_shared.runtime import ServiceContext, Settings, lifecycle, load_settings, running

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: none
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
"""


class Recorder:
    """A service that records when it runs."""

    def __init__(self, name: str = "recorder", failures: int = 0) -> None:
        self.name = name
        self.failures = failures
        self.runs = 0
        self.ended: list[str] = []
        self.up = asyncio.Event()

    async def run(self, context: ServiceContext) -> None:
        self.runs += 1
        if self.runs <= self.failures:
            raise RuntimeError(f"failure {self.runs}")
        context.health.ok(self.name)
        self.up.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.append(self.name)


@pytest.fixture(autouse=True)
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 0.001)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """None of the servers in these settings exists."""
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    return load_settings(
        None,
        {
            "DYNAMO_PLATFORM__KUBERNETES__KUBECONFIG": str(file),
            "DYNAMO_PLATFORM__NATS__SERVERS": "nats://127.0.0.1:1",
            "DYNAMO_SERVER__METRICS__PORT": "0",
            "DYNAMO_SERVER__METRICS__BIND_ADDRESS": "127.0.0.1",
            "DYNAMO_SERVER__METRICS__SECURE": "false",
            "DYNAMO_SERVER__HEALTH_PROBE__PORT": "0",
            "DYNAMO_SERVER__HEALTH_PROBE__BIND_ADDRESS": "127.0.0.1",
        },
    )


async def fetch(url: str, tls: ssl.SSLContext | None = None) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, ssl=tls if tls is not None else True, timeout=aiohttp.ClientTimeout(5)) as answer,
    ):
        return answer.status, await answer.text()


async def test_a_failing_service_is_restarted_and_others_are_not_affected(settings: Settings) -> None:
    failing, well = Recorder("failing", failures=3), Recorder("well")
    async with running([failing, well], settings) as platform:
        await asyncio.wait_for(failing.up.wait(), 60)
        assert (failing.runs, well.runs) == (4, 1)
        await platform.ready(10)
        _, body = await fetch(f"http://127.0.0.1:{platform.metrics_port}/metrics")
        assert 'dynamo_platform_service_restarts_total{service="failing"} 3.0' in body
        assert "process_resident_memory_bytes" in body
    assert failing.ended + well.ended == ["failing", "well"]


async def test_a_start_warns_of_older_names_and_of_settings_without_effect(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(lifecycle.log, "warning", lambda text, setting="": warned.append(f"{text}: {setting}"))
    ignored = settings.model_copy(update={"security": settings.security.model_copy(update={"enable_http2": True})})
    async with running([Recorder()], ignored.with_older_names(("LOG_LEVEL",))):
        pass
    assert warned[:2] == [
        "setting ignored: security.enableHTTP2 is ignored: servers always speak HTTP/1.1",
        "deprecated setting: LOG_LEVEL is deprecated; use the setting logging.level",
    ]


async def test_traces_have_the_services_name_even_with_older_variables(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[str] = []

    def tracing(name: str, _: object) -> contextlib.AbstractContextManager[None]:
        named.append(name)
        return contextlib.nullcontext()

    monkeypatch.setattr(lifecycle, "tracing", tracing)
    async with running([Recorder()], settings.with_older_names(("LOG_LEVEL",))):
        pass
    assert named == ["recorder"]


class Tasks(Recorder):
    """A service whose tasks fail, each in its own group."""

    async def run(self, context: ServiceContext) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(super().run(context))


async def test_readiness_reports_the_kind_of_error_of_a_task(settings: Settings) -> None:
    async with running([Tasks(failures=10**6)], settings) as platform:
        with pytest.raises(TimeoutError, match=r": recorder: RuntimeError; the log has the details$"):
            await platform.ready(1.0)


async def test_readiness_reports_what_is_missing(settings: Settings) -> None:
    service = Recorder(failures=10**6)
    async with running([service], settings) as platform:
        url = f"http://127.0.0.1:{platform.health_port}"
        status, body = await fetch(f"{url}/readyz")
        assert status == 503
        assert '"recorder"' in body
        assert (await fetch(f"{url}/healthz"))[0] == 200, "it lives, and starting it again would not help"
        with pytest.raises(TimeoutError, match=r"^not ready after 0.01 s: recorder: [^{}]+$"):
            await platform.ready(0.01)
        service.failures = 0
        await platform.ready(10)
        status, body = await fetch(f"{url}/readyz")
        assert status == 200
        assert '"degraded"' in body, "NATS is unavailable: that must not take the pod out of service"


async def test_metrics_over_tls_use_renewed_certificates(settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "certificate"
    folder.mkdir()
    authorities = [CertificateAuthority(tmp_path / f"pki-{number}") for number in range(2)]

    def install(authority: CertificateAuthority) -> None:
        pair = authority.server("metrics")
        (folder / "tls.crt").write_bytes(pair.certificate.read_bytes())
        (folder / "tls.key").write_bytes(pair.key.read_bytes())

    install(authorities[0])
    metrics = settings.server.metrics.model_copy(update={"cert_dir": folder, "secure": True})
    server = settings.server.model_copy(update={"metrics": metrics})
    async with running([Recorder()], settings.model_copy(update={"server": server})) as platform:
        url = f"https://127.0.0.1:{platform.metrics_port}/metrics"
        clients = [ssl.create_default_context(cafile=str(authority.certificate)) for authority in authorities]
        assert (await fetch(url, clients[0]))[0] == 401, "a bearer token is needed, with any certificate"
        with pytest.raises(aiohttp.ClientError):
            await fetch(url, clients[1])
        install(authorities[1])
        assert (await fetch(url, clients[1]))[0] == 401


async def test_metrics_can_be_disabled(settings: Settings) -> None:
    metrics = settings.server.metrics.model_copy(update={"enabled": False})
    server = settings.server.model_copy(update={"metrics": metrics})
    async with running([Recorder()], settings.model_copy(update={"server": server})) as platform:
        assert platform.metrics_port == 0
        assert (await fetch(f"http://127.0.0.1:{platform.health_port}/healthz"))[0] == 200


async def test_a_taken_port_is_reported_at_once(settings: Settings) -> None:
    async with running([Recorder()], settings) as first:
        probe = settings.server.health_probe.model_copy(update={"port": first.health_port})
        server = settings.server.model_copy(update={"health_probe": probe})
        with pytest.raises(OSError, match="Address already in use"):
            async with running([Recorder()], settings.model_copy(update={"server": server})):
                pass


async def test_a_process_without_need_for_nats_and_etcd_is_ready_without_them(settings: Settings) -> None:
    class Alone(Recorder):
        api_server_alone = True

    platform = settings.platform
    etcd = platform.etcd.model_copy(update={"endpoints": ("http://127.0.0.1:1",)})
    settings = settings.model_copy(update={"platform": platform.model_copy(update={"etcd": etcd})})
    async with running([Alone()], settings) as up:
        await up.ready(10)
        status, body = await fetch(f"http://127.0.0.1:{up.health_port}/readyz")
        assert (status, "nats" in body, "etcd" in body) == (200, False, False)
    async with running([Alone("alone"), Recorder("other")], settings) as up:
        _, body = await fetch(f"http://127.0.0.1:{up.health_port}/readyz")
        assert "nats" in body
        assert "etcd" in body


#: A platform without an API server, with a soft limit of 256; its last line is the limit that it then has.
