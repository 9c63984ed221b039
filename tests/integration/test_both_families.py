"""NATS and etcd, with the command lines of the chart, listen on addresses of both IP families."""

import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import nats
import pytest
import yaml
from dynamo_devcluster import Programs, free_port
from dynamo_devcluster.probe import LocalHttp
from dynamo_devcluster.servers import LocalServer

RENDERED = Path(__file__).parents[1] / "charts" / "goldens" / "small.yaml"
HOSTS = ("127.0.0.1", "[::1]")


def has_ipv6() -> bool:
    """Whether this machine has IPv6."""
    with suppress(OSError), socket.socket(socket.AF_INET6) as trial:
        trial.bind(("::1", 0))
        return True
    return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def rendered(kind: str, name: str) -> dict[str, Any]:
    """A rendered object of the chart."""
    objects = yaml.safe_load_all(RENDERED.read_text())
    (result,) = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    return dict(result)


@pytest.fixture
async def nats_ports(tmp_path: Path) -> AsyncIterator[tuple[int, int]]:
    """Ports of a NATS with the chart's addresses, for clients and for monitoring."""
    text = rendered("ConfigMap", "dynamo-platform-nats")["data"]["nats.conf"]
    client, monitoring = free_port(), free_port()
    lines = re.findall(r"^(?:server_|listen|http).*$", text, flags=re.MULTILINE)
    assert len(lines) == 4
    own = "\n".join(lines).replace(":4222", f":{client}").replace(":8222", f":{monitoring}")
    file = tmp_path / "nats.conf"
    file.write_text(own)
    http = LocalHttp(monitoring)
    command: list[str | Path] = [await Programs().obtain("nats-server"), "--config", file]
    environ = {**os.environ, "POD_NAME": "dynamo-platform-nats-0"}
    log = tmp_path / "nats.log"
    async with LocalServer("nats-server", command, log, lambda: http.ok("/healthz"), environ=environ):
        yield client, monitoring


@pytest.mark.parametrize("host", HOSTS)
async def test_nats_is_reachable_in_both_families(nats_ports: tuple[int, int], host: str) -> None:
    client, monitoring = nats_ports
    connection = await nats.connect(f"nats://{host}:{client}", allow_reconnect=False)
    await connection.flush()
    await connection.close()
    async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{monitoring}/varz") as answer:
        assert (await answer.json())["tags"] == ["dynamo-platform-nats-0"]


@pytest.fixture
async def etcd_ports(tmp_path: Path) -> AsyncIterator[tuple[int, int]]:
    """Ports of an etcd with the chart's addresses, for clients and for metrics."""
    pod = rendered("StatefulSet", "dynamo-platform-etcd")["spec"]["template"]["spec"]
    given = [each for each in pod["containers"][0]["command"] if each.startswith("--listen-")]
    assert len(given) == 3
    ports = {2379: free_port(), 2380: free_port(), 2381: free_port()}
    own = [
        re.sub(r":(\d+)$", lambda port: f":{ports[int(port[1])]}", each).replace("https:", "http:") for each in given
    ]
    peer, client = (f"http://localhost:{ports[port]}" for port in (2380, 2379))
    command: list[str | Path] = [
        await Programs().obtain("etcd"), "--name=only", f"--data-dir={tmp_path / 'data'}", *own,
        f"--advertise-client-urls={client}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=only={peer}",
    ]  # fmt: skip
    http = LocalHttp(ports[2381])
    async with LocalServer("etcd", command, tmp_path / "etcd.log", lambda: http.ok("/readyz")):
        yield ports[2379], ports[2381]


@pytest.mark.parametrize("host", HOSTS)
async def test_etcd_is_reachable_in_both_families(etcd_ports: tuple[int, int], host: str) -> None:
    client, metrics = etcd_ports
    async with grpc.aio.insecure_channel(f"{host}:{client}") as channel:
        await channel.channel_ready()
    async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{metrics}/readyz") as answer:
        assert answer.status == 200
