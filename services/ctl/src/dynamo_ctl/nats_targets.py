"""The NATS server that a command uses: from its options, from the settings, or of the platform that runs here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dynamo_shared.bus.errors import StreamNotFoundError
from dynamo_shared.bus.nats import NatsBus, NatsOptions
from dynamo_shared.bus.permissions import CLI_USER
from dynamo_shared.bus.protocol import Bus, BusHealth
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.runtime.connections import nats_options

from dynamo_ctl import running_platform
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.settings import load

#: Time-out of a connection. Seconds.
CONNECT_WITHIN = 5.0
#: Interval of checks for a platform that has not created its streams yet. Seconds.
POLL_INTERVAL = 0.2


class NatsTarget(NamedTuple):
    """A NATS server, the name of the cluster whose events to read, and how to connect to that cluster."""

    options: NatsOptions
    cluster: str
    kubeconfig: Path | None = None
    context: str | None = None

    def namespace(self, kubeconfig: Path | None = None) -> str:
        """The namespace of a command without `-n`, with its `--kubeconfig`. Raises ConfigError."""
        from dynamo_ctl.targets import ClusterOptions  # imports the Kubernetes client

        named = (self.kubeconfig, self.context) if kubeconfig is None else (kubeconfig, None)
        return ClusterOptions(*named).namespace()


def nats_server(url: str | None, cluster: str | None, config: Path | None) -> NatsTarget:
    """The server of the command line, otherwise of the settings, otherwise of the platform that runs here. Raises
    CtlError if there is none.
    """
    settings = load(config)
    named = "nats" in settings.platform.model_fields_set
    options = nats_options(settings.platform.nats, "dynamoctl")
    if url is None and not named:
        if (here := running_platform.find()) is None:
            raise CtlError(
                "no NATS server given: use --nats URL or --config FILE, or run this where dynamoctl up or demo runs",
                ExitCode.UNREACHABLE,
            )
        options = _on_this_machine(replace(options, servers=(here.nats,)), here)
        return NatsTarget(options, cluster or here.cluster, *here.cluster_options)
    if url is not None:
        options = NatsOptions(servers=(url,), name="dynamoctl") if not named else replace(options, servers=(url,))
    kubernetes = settings.platform.kubernetes
    return NatsTarget(
        options, cluster or settings.platform.cluster_name, kubernetes.kubeconfig, kubernetes.context or None
    )


@asynccontextmanager
async def connected(where: NatsTarget) -> AsyncIterator[Bus]:
    """A connection during the block. Raises CtlError if no server answers."""
    bus = await NatsBus.connect(where.options, wait=CONNECT_WITHIN)
    try:
        if bus.health is not BusHealth.CONNECTED:
            reason = f": {bus.trouble}" if bus.trouble else ""
            raise CtlError(
                f"NATS does not answer at {', '.join(where.options.servers)}{reason}; is the platform running?",
                ExitCode.UNREACHABLE,
            )
        yield bus
    finally:
        await bus.close()


async def wait_for_stream(bus: Bus, stream: StreamSpec) -> None:
    """Return when the platform has created a stream. NATS does not announce streams, so this polls."""
    while not await stream_exists(bus, stream):  # noqa: ASYNC110
        await asyncio.sleep(POLL_INTERVAL)


async def stream_exists(bus: Bus, stream: StreamSpec) -> bool:
    """Whether the platform has created a stream."""
    try:
        await bus.stream_state(stream)
    except StreamNotFoundError:
        return False
    return True


def _on_this_machine(options: NatsOptions, here: running_platform.RunningPlatform) -> NatsOptions:
    """The options, with the user for people if this platform started its NATS. Raises CtlError if the password is
    unreadable.
    """
    if not here.nats_credentials:
        return options
    file = Path(here.nats_credentials) / CLI_USER
    try:
        return replace(options, user=CLI_USER, password=file.read_text(encoding="utf-8").strip())
    except OSError as error:
        raise CtlError(
            f"{file}: {error.strerror}; only the user who runs the platform may read it", ExitCode.UNREACHABLE
        ) from error
