"""Worker discovery with NVIDIA's real runtime: a frontend and two mockers are discovered, and reported when killed."""

import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import EtcdServer, NatsServer
from dynamo_model_discovery.app import ModelDiscoveryService
from dynamo_watcher.app import WatcherService

from tests.dynamo_runtime.environment import RuntimeEnvironment
from tests.dynamo_runtime.models import tiny_model
from tests.dynamo_runtime.processes import LEASE_TTL, Planes, Runtime, etcd_planes, file_planes

from .discovered import deployment, listening, viewing
from .platform import eventually, platform, settings

#: Installing the runtime takes half a minute, longer if the network is slow.
pytestmark = pytest.mark.timeout(600)
#: Time for a busy machine; otherwise changes of a worker are reported within a second.
SLACK = 60.0


@pytest.fixture(scope="module")
async def model(dynamo_runtime: RuntimeEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return await tiny_model(dynamo_runtime, tmp_path_factory.mktemp("model"))


@pytest.fixture
def runtime(dynamo_runtime: RuntimeEnvironment, model: Path, tmp_path: Path) -> Callable[[Planes], Runtime]:
    """Creates processes that discover each other in a given way."""
    return lambda planes: Runtime(dynamo_runtime, model, planes, tmp_path / "logs")


@pytest.fixture
async def etcd_plane(etcd_server: EtcdServer, programs: Programs, tmp_path: Path) -> AsyncIterator[Planes]:
    """Discovery in etcd. Dynamo has its own NATS, apart from the platform's, as recommended."""
    async with NatsServer(await programs.obtain("nats-server"), tmp_path / "dynamos-nats") as server:
        yield etcd_planes(etcd_server.url, server.url)


@pytest.fixture
def lasting_plane(etcd_plane: Planes) -> Planes:
    """The same, with workers that outlast an etcd outage of the time that a busy machine needs to restart it."""
    return dataclasses.replace(etcd_plane, environ={**etcd_plane.environ, "ETCD_LEASE_TTL": "300"})


def parts() -> list[Any]:
    return [WatcherService(), ModelDiscoveryService()]


async def joins_and_leaves(configured, nats_server: NatsServer, runtime: Runtime, source: str) -> None:
    """The life of a disaggregated deployment, as events and STATE report it."""
    async with listening(nats_server) as heard, deployment(runtime) as processes:
        async with platform(configured, parts()), viewing(nats_server) as views:
            frontend = await processes.frontend()
            await processes.mocker("prefill")
            await eventually(lambda: len(heard.of("worker.joined")) == 1, "the prefill worker joined")
            (waiting,) = await eventually(lambda: views.models, "a model that lacks its decode workers")
            assert (waiting.available, waiting.missing) == (False, ["decode"])
            decode = await processes.mocker("decode")
            await eventually(lambda: heard.of("model.available"), "the model is available")
            # The frontend's answer is the truth that the platform must report.
            await eventually(frontend.models, "the frontend serves the model")
            # The frontend lists a model by its card, and learns of the workers by other keys.
            _, answer = await eventually(
                lambda: frontend.chat("tiny"), "the frontend answers", where=lambda answered: answered[0] == 200
            )
            assert answer["usage"]["completion_tokens"] == 8
            joined = heard.workers
            assert set(joined) == {"prefill", "decode"}
            assert len(heard.of("worker.joined")) == 2
            assert {data["source"] for data in joined.values()} == {source}
            assert all(isinstance(data["instanceId"], str) for data in joined.values())
            await eventually(lambda: set(views.workers) == {"prefill", "decode"}, "both in STATE")
            for worker in views.workers.values():
                assert worker.transport == "tcp"
                (card,) = worker.models
                assert (card.name, card.max_kv_tokens) == ("tiny", 512 * 16)
                assert (card.max_num_seqs, card.max_num_batched_tokens, card.context_length) == (256, 8192, 2048)
            (served,) = await eventually(
                lambda: [model for model in views.models if model.available], "available in STATE"
            )
            assert served.workers == {"decode": 1, "prefill": 1}

        # After a restart the platform reports no known worker again, but changes that happened meanwhile.
        reported = len(heard.joins)
        second = await processes.mocker("prefill")
        async with platform(configured, parts()), viewing(nats_server) as views:
            await eventually(lambda: len(heard.of("worker.joined")) == 3, "the second prefill worker joined")
            assert heard.joins[reported:] == ["worker.joined.v1"]

            # kill -9: it leaves when its lease expires.
            await decode.kill()
            await eventually(lambda: heard.of("worker.left"), "the decode worker left", LEASE_TTL + SLACK)
            (left,) = heard.of("worker.left")
            assert left["instanceId"] == joined["decode"]["instanceId"]
            (gone,) = await eventually(lambda: heard.of("model.gone"), "the model is gone")
            assert (gone["model"], gone["missing"]) == ("tiny", ["decode"])

            # An orderly shutdown is reported at once.
            await second.stop()
            await eventually(lambda: len(heard.of("worker.left")) == 2, "the second prefill worker left", SLACK)
            assert {data["role"] for data in heard.of("worker.left")} == {"decode", "prefill"}
            await processes.mocker("decode")
            await eventually(lambda: len(heard.of("model.available")) == 2, "the model is available again")
            await eventually(lambda: set(views.workers) == {"prefill", "decode"}, "both in STATE again")


async def test_workers_that_register_in_etcd(control_plane, nats_server, etcd_server, etcd_plane, runtime) -> None:
    address = etcd_server.url
    configured = settings(control_plane.kubeconfig, nats_server.url, INFRASTRUCTURE__ETCD_ADDRESS=address)
    await joins_and_leaves(configured, nats_server, runtime(etcd_plane), "etcd")


async def test_workers_that_register_in_files(control_plane, nats_server, runtime, tmp_path) -> None:
    directory = tmp_path / "kv"
    configured = settings(
        control_plane.kubeconfig, nats_server.url, PLATFORM__MODEL_DISCOVERY__WORKERS__FILE_DIRECTORY=str(directory)
    )
    await joins_and_leaves(configured, nats_server, runtime(file_planes(directory)), "file")


async def test_etcd_that_is_away_makes_no_worker_leave(
    control_plane, nats_server, etcd_server, lasting_plane, runtime
) -> None:
    address = etcd_server.url
    configured = settings(control_plane.kubeconfig, nats_server.url, INFRASTRUCTURE__ETCD_ADDRESS=address)

    def reported(up: Any) -> Any:
        return up.context.health.report()["parts"]["worker-discovery"]

    async with listening(nats_server) as heard, deployment(runtime(lasting_plane)) as made:
        await made.mocker("agg")
        async with platform(configured, parts()) as up:
            await eventually(lambda: heard.of("model.available"), "the model is available")
            await etcd_server.kill()
            await eventually(lambda: "etcd" in reported(up)["message"], "health reports that etcd is away")
            await etcd_server.start()
            await eventually(lambda: reported(up)["state"] == "ok", "etcd is back")
        # A platform that starts while etcd is away gets the workers from STATE.
        await etcd_server.kill()
        async with platform(configured, parts()) as up, viewing(nats_server) as views:
            await eventually(lambda: "etcd" in reported(up)["message"], "health reports that etcd is away")
            assert set(views.workers) == {"aggregated"}
            await etcd_server.start()
            await eventually(lambda: reported(up)["state"] == "ok", "etcd is back")
            assert set(views.workers) == {"aggregated"}
        assert heard.joins == ["worker.joined.v1", "model.available.v1"]
