"""The Python programs that the documents show to integrators, run unchanged against a real server."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from dynamo_devcluster import NatsServer, NatsServerOptions, Programs
from dynamo_shared.bus import EventPublisher, NatsBus, server_config
from dynamo_shared.bus.commands import Answered, CommandConsumer
from dynamo_shared.bus.permissions import COMMAND_SENDER, EVENT_READER, USERS
from dynamo_shared.bus.streams import ALL
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications.scaling import ScaleData

from tests.building.processes import ending
from tests.building.tasks import in_background

ROOT = Path(__file__).parents[3]
CLUSTER = "local"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    options = NatsServerOptions(authorization=server_config.authorization(CLUSTER, {user: user for user in USERS}))
    async with NatsServer(await Programs().obtain("nats-server"), tmp_path, options) as running:
        async with connected(running, "watcher") as bus:
            await bus.declare(*ALL)
        yield running


@asynccontextmanager
async def connected(server: NatsServer, user: str) -> AsyncIterator[NatsBus]:
    bus = await NatsBus.connect(servers=(server.url,), name=user, user=user, password=user)
    try:
        yield bus
    finally:
        await bus.close()


@asynccontextmanager
async def program(
    page: str, user: str, server: NatsServer, folder: Path, *arguments: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the only program of a page as that user."""
    (text,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    password = folder / "password"
    password.write_text(f"{user}\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", text, *arguments,
        env={"NATS_URL": server.url, "NATS_PASSWORD_FILE": str(password)}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with ending(process), asyncio.timeout(60):
        yield process


async def test_events_are_printed_and_a_restart_continues_where_it_stopped(server: NatsServer, tmp_path: Path) -> None:
    event = json.loads((ROOT / "proto/golden/deployment.ready.json").read_text())["payload"]
    for name in ("first", "second"):
        async with connected(server, "pod-builder") as bus:
            subject = subjects.event_subject(CLUSTER, "team", "dynamographdeployment", name, "ready")
            await bus.publish(subject, json.dumps({**event, "data": {**event["data"], "name": name}}).encode())
        async with program("events.md", EVENT_READER, server, tmp_path) as process:
            assert process.stdout is not None
            # An event whose acknowledgement was lost when the previous program ended is redelivered.
            while (words := (await process.stdout.readline()).decode().split())[3] != name:
                assert words[3] == "first"
        assert words[1:3] == ["com.nvidia.dynamo.deployment.ready.v1", event["data"]["namespace"]]


async def test_a_scale_command_is_answered(server: NatsServer, tmp_path: Path) -> None:
    got: list[ScaleData] = []

    async def handle(_: cloudevents.Event, data: ScaleData) -> Answered:
        got.append(data)
        return Answered("Applied", "Decode 2 -> 4")

    async with connected(server, "scaler") as bus:
        publisher = EventPublisher(bus, CLUSTER)
        consumer = CommandConsumer(bus, CLUSTER, "scaler", {"scale": handle}, publisher)
        arguments = ("team-a", "llama", "Decode", "4")
        async with (
            in_background(publisher.run()),
            in_background(consumer.run()),
            program("scale-commands.md", COMMAND_SENDER, server, tmp_path, *arguments) as process,
        ):
            out, _ = await process.communicate()
    assert out.decode() == "com.nvidia.dynamo.command.completed.v1 Applied Decode 2 -> 4\n"
    ((data,), (target,)) = got, got[0].targets
    assert (data.graph_deployment, target.component, target.replicas, data.requester) == (
        "llama",
        "Decode",
        4,
        "my-program",
    )
