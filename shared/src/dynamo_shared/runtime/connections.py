"""Opens the connections that the settings describe, and reports their health."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynamo_shared.bus import Bus, BusHealth
from dynamo_shared.bus.nats import NatsBus, NatsOptions
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime.health import Health, HealthState
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings import Nats, Settings

#: `/apis/<group>/<version>/namespaces/<ns>/<plural>/...` and `/api/v1/...`: number of parts before the resource.
_GROUP_PREFIX, _CORE_PREFIX = 4, 3
#: A running NATS answers in milliseconds; if it is down, the process does not wait longer than this. Seconds.
FIRST_CONNECTION_WITHIN = 1.0


@asynccontextmanager
async def kubernetes(settings: Settings, metrics: Metrics) -> AsyncIterator[KubeClient]:
    """A client for the configured cluster that counts its requests."""

    def observe(method: str, path: str, status: int, _: float) -> None:
        metrics.kube_request(method, resource_in(path), status)

    where = settings.platform.kubernetes
    client = await KubeClient.open(
        kubeconfig=where.kubeconfig, context=where.context, field_manager="dynamo-platform", observer=observe
    )
    async with client:
        yield client


@asynccontextmanager
async def nats(settings: Settings, name: str, health: Health) -> AsyncIterator[Bus]:
    """The bus. While NATS is unavailable, services continue with what they have: its loss only degrades the health."""
    bus = await NatsBus.connect(nats_options(settings.platform.nats, name), wait=FIRST_CONNECTION_WITHIN)

    def report(_: BusHealth) -> None:
        if bus.health is BusHealth.CONNECTED:
            health.ok("nats")
        else:
            health.set("nats", HealthState.DEGRADED, bus.trouble or "not connected")

    bus.on_health(report)
    report(bus.health)
    try:
        yield bus
    finally:
        await bus.close()


def nats_options(settings: Nats, name: str) -> NatsOptions:
    """The options of the bus from settings."""
    return NatsOptions(
        servers=settings.servers,
        name=name,
        ca_file=settings.tls.ca_file,
        cert_file=settings.tls.cert_file,
        key_file=settings.tls.key_file,
        user=settings.user,
        password=settings.password.get_secret_value(),
        password_file=settings.password_file,
        token=settings.token.get_secret_value(),
        nkey_seed_file=settings.nkey_seed_file,
        credentials_file=settings.creds_file,
        replicas=settings.stream_replicas,
        first_member=settings.first_member,
        inbox_prefix=settings.inbox_prefix,
    )


def resource_in(path: str) -> str:
    """The group resource of a request path, such as `deployments.apps`, with the subresource after a slash."""
    parts = path.strip("/").split("/")
    if parts[0] == "apis" and len(parts) >= _GROUP_PREFIX:
        group, rest = parts[1], parts[3:]
    elif parts[0] == "api" and len(parts) >= _CORE_PREFIX:
        group, rest = "", parts[2:]
    else:
        return parts[0]
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    name = f"{rest[0]}.{group}" if group else rest[0]
    return f"{name}/{rest[2]}" if len(rest) > 2 else name
