"""nats-server reads the paths in its configuration, whatever characters they have."""

import asyncio
from pathlib import Path

import pytest
from dynamo_devcluster import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.bus import server_config

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
