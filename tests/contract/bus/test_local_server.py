"""The NATS that the platform starts on this machine: in any folder, and on a disk that is almost full."""

import asyncio
import json
from pathlib import Path

import pytest
from dynamo_devcluster import Programs
from dynamo_devcluster.probe import LocalHttp
from dynamo_devcluster.servers import STORAGE, NatsServer
from dynamo_shared.bus import server_config
from dynamo_shared.bus.errors import StreamFullError
from dynamo_shared.bus.nats import NatsBus
from dynamo_shared.bus.streams import ALL, EVENTS

NAME = "My Répo – 測試 'a' \"b\""


async def test_a_local_server_runs_in_any_folder(tmp_path: Path) -> None:
    async with NatsServer(await Programs().obtain("nats-server"), tmp_path / NAME) as server:
        assert server.data.is_dir()


@pytest.mark.parametrize("password", ["wörter", server_config.Variable("HOME")])
async def test_a_server_accepts_the_configuration(tmp_path: Path, password: str | server_config.Variable) -> None:
    config = server_config.NatsServerConfig(store=str(tmp_path / NAME))
    file = tmp_path / "nats.conf"
    file.write_text(server_config.text(server_config.configuration("c", {"scaler": password}, config)), "utf-8")
    program = await Programs().obtain("nats-server")
    process = await asyncio.create_subprocess_exec(program, "-t", "-c", file, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode == 0, said.decode()


class SmallServer(NatsServer):
    """A server like one that finds a small disk."""

    def _configuration(self) -> dict[str, object]:
        return {**super()._configuration(), "jetstream": {"store_dir": str(self.data), "max_file_store": 1024**3}}


async def test_streams_of_a_local_server_do_not_depend_on_the_free_disk(tmp_path: Path) -> None:
    """The platform's streams may have 5 GiB, and nats-server refuses them if they exceed its limit."""
    async with NatsServer(await Programs().obtain("nats-server"), tmp_path) as server:
        status, body = await LocalHttp(server.monitoring_port).request("GET", "/jsz")
    assert status == 200
    assert json.loads(body)["config"]["max_storage"] == STORAGE > sum(each.max_bytes for each in ALL)


async def test_the_error_says_which_stream_has_no_space_and_what_to_do(tmp_path: Path) -> None:
    async with SmallServer(await Programs().obtain("nats-server"), tmp_path) as server:
        bus = await NatsBus.connect(servers=(server.url,), name="small")
        with pytest.raises(
            StreamFullError, match=r"no space for stream DYNAMO_EVENTS, which may have 4 GiB: .*enlarge"
        ):
            await bus.declare(EVENTS)
        await bus.close()
