"""`helm upgrade` from the frozen chart, and `helm rollback`, while graphs change."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from dynamo_shared.api.objects import KubeObject

from tests.charts.freeze import frozen
from tests.charts.helm import PLATFORM
from tests.e2e_platform import objects, pods
from tests.e2e_platform.cluster import CommandError, eventually
from tests.e2e_platform.objects import CRDS, NAMESPACE, RELEASE
from tests.e2e_platform.platform import EXPECTED, GRAPHS, INSTALLS_WITHIN, MOCKED, Platform

GRAPHS_THAT_CHANGE = 8
BEFORE = {part: count for part, count in EXPECTED.items() if part not in objects.ADDED}


class Changing:
    """Creates and changes graphs, one after another, until cancelled."""

    def __init__(self, platform: Platform, name: str) -> None:
        self._platform = platform
        self._name = name
        self.writes = 0
        self.refused: list[str] = []

    async def forever(self) -> None:
        """A graph a second, each with one replica and then with two; a refused write is retried."""
        while True:
            for number in range(GRAPHS_THAT_CHANGE):
                for replicas in (1, 2):
                    await self._write(f"{self._name}-{number}", replicas)
                await asyncio.sleep(1)

    async def _write(self, name: str, replicas: int) -> None:
        try:
            await self._platform.cluster.apply(objects.paused_graph(GRAPHS, name, replicas))
        except CommandError as error:
            self.refused.append(str(error))
        else:
            self.writes += 1


async def upgrade(platform: Platform) -> None:
    """No write is lost or refused, and no pod of a graph is replaced."""
    (released,) = frozen(PLATFORM)[-1:]
    workers = pods.uids(await platform.graph_pods())
    with platform.held.check(f"{released.stem}, the previous version, is installed in place of this one"):
        await platform.cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", within=180)
        await platform.helm("install", released)
        await pods.all_ready(platform.cluster, NAMESPACE, BEFORE)
        await platform.successful(GRAPHS, MOCKED)
    steps: dict[str, Callable[[], Awaitable[None]]] = {
        "upgrade": lambda: _upgrade(platform),
        "rollback": lambda: _roll_back(platform),
    }
    for verb, step in steps.items():
        what = f"helm {verb} while graphs change: no write is refused or lost, no workload restarts"
        with platform.held.check(what) as details:
            changing = Changing(platform, verb)
            task = asyncio.create_task(changing.forever())
            try:
                await step()
                await pods.all_ready(platform.cluster, NAMESPACE, EXPECTED if verb == "upgrade" else BEFORE)
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            details.append(f"{changing.writes} writes, {len(changing.refused)} refused")
            await _settled(platform, verb)
            assert pods.uids(await platform.graph_pods()) == workers, "pods of the served graph were replaced"
            await platform.chat()
            assert not changing.refused, changing.refused[:3]
    with platform.held.check("helm upgrade again, for what follows"):
        await _upgrade(platform)
        await pods.all_ready(platform.cluster, NAMESPACE, EXPECTED)


async def _upgrade(platform: Platform) -> None:
    """Upgrade as docs/upgrade.md says: the definitions first."""
    await platform.cluster.helm(
        "upgrade", CRDS, str(platform.charts / CRDS), "--namespace", NAMESPACE, "--reuse-values"
    )
    await platform.helm("upgrade")


async def _roll_back(platform: Platform) -> None:
    waiting = ("--wait", f"--timeout={INSTALLS_WITHIN:.0f}s")
    await platform.cluster.helm("rollback", RELEASE, "--namespace", NAMESPACE, *waiting, within=INSTALLS_WITHIN + 30)


async def _settled(platform: Platform, prefix: str) -> None:
    """Wait until every graph matches its last write; then delete them."""
    cluster = platform.cluster

    async def graphs() -> list[KubeObject]:
        result = await cluster.items("dynamographdeployments", "--namespace", GRAPHS)
        return [graph for graph in result if graph["metadata"]["name"].startswith(f"{prefix}-")]

    async def check() -> bool:
        named = await graphs()
        assert named, "no graph was written"
        for graph in named:
            name = graph["metadata"]["name"]
            selector = f"--selector=nvidia.com/dynamo-graph-deployment-name={name}"
            (deployment,) = await cluster.items("deployments", "--namespace", GRAPHS, selector)
            assert deployment["spec"]["replicas"] == graph["spec"]["components"][0]["replicas"], name
            assert graph["status"]["observedGeneration"] == graph["metadata"]["generation"], name
        return True

    await eventually(check, "every graph is as it was last written", 90)
    names = [graph["metadata"]["name"] for graph in await graphs()]
    await cluster.kubectl("delete", "dgd", *names, "--namespace", GRAPHS, "--timeout=90s", within=100)
