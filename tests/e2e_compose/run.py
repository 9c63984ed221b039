"""The checks.

They run in separate namespaces, so that bridges and packet filters do not change the machine; see __main__.py.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from dynamo_devcluster import Programs

from tests.e2e_platform.cluster import CommandError, eventually
from tests.held import Held

from .prepare import archives

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".dynamo" / "container-tools"
PROJECT = "dynamo-platform"
SERVICES = ("admission", "watcher", "pod-builder", "scaler", "model-discovery", "profiler", "planner", "dynadmin")
SERVERS = ("nats", "etcd", "kubernetes")
STEPS = ("credentials", "nodes", "definitions")
EXAMPLE = ROOT / "examples" / "vllm-agg.yaml"
UP_WITHIN = 600.0
HEALTHY_WITHIN = 300.0
#: runc supports every cgroup layout; limits are not raised, because root may lack that right.
SETTINGS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""


class Project:
    """Commands of a user of compose.yaml."""

    def __init__(self, kubectl: Path, folder: Path) -> None:
        self._kubectl = kubectl
        settings = folder / "containers.conf"
        settings.write_text(SETTINGS)
        self._environment = {**os.environ, "CONTAINERS_CONF": str(settings), "PYTHONPATH": str(TOOLS)}

    async def compose(self, *arguments: str, within: float = UP_WITHIN) -> str:
        """The output of podman-compose."""
        return await self._run([sys.executable, "-m", "podman_compose", *arguments], within)

    async def podman(self, *arguments: str, within: float = 120.0) -> str:
        """The output of podman."""
        return await self._run(["podman", *arguments], within)

    async def kubectl(self, *arguments: str) -> str:
        """The command in the comment of compose.yaml."""
        return await self._run([str(self._kubectl), "--server=http://127.0.0.1:8001", *arguments], 30.0)

    async def container(self, service: str) -> dict[str, Any]:
        """podman's description of a service's only container."""
        result = await self.podman("ps", "--all", "--quiet", f"--filter=label=com.docker.compose.service={service}")
        (identifier,) = result.split()
        return dict(json.loads(await self.podman("inspect", identifier))[0])

    async def _run(self, command: Sequence[str], within: float) -> str:
        return await asyncio.to_thread(self._output, command, within)

    def _output(self, command: Sequence[str], within: float) -> str:
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=within, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise CommandError(f"{' '.join(command[:6])} did not end within {within:.0f} s") from None
        if done.returncode:
            raise CommandError(f"{' '.join(command[:6])}: {(done.stdout + done.stderr).strip()[-6000:]}")
        return done.stdout


async def checks(project: Project, held: Held) -> None:
    """Run every check, from an empty machine to an empty machine."""
    with held.check("podman-compose up --detach, images as `make image` builds them"):
        await project.compose("up", "--detach")
    with held.check(f"the steps {', '.join(STEPS)} are done"):
        for service in STEPS:
            await eventually(_healthy(project, service), f"{service} is done", HEALTHY_WITHIN)
    with held.check(
        f"{len(SERVICES)} services, profiler and planner among them, and {len(SERVERS)} servers are healthy by their own checks"
    ):
        for service in (*SERVERS, *SERVICES):
            await eventually(_healthy(project, service), f"{service} is healthy", HEALTHY_WITHIN)
    with held.check("services run as declared: read-only, no capability, no new privileges, not root"):
        for service in SERVICES:
            shown = await project.container(service)
            host = shown["HostConfig"]
            assert host["ReadonlyRootfs"], service
            assert not shown["EffectiveCaps"], (service, shown["EffectiveCaps"])
            assert "no-new-privileges" in host["SecurityOpt"], (service, host["SecurityOpt"])
            assert shown["Config"]["User"] == "65532:65532", service
    with held.check("a graph becomes successful"):
        await project.kubectl("apply", "--filename", str(EXAMPLE))
        await eventually(_successful(project), "the graph is successful", 90)
    with held.check("the webhook refuses a graph with a mistake"):
        try:
            await project.kubectl("patch", "dgd", EXAMPLE.stem, "--type=merge", "--patch", '{"spec":{"components":[]}}')
        except CommandError as error:
            refused = str(error)
        else:
            refused = ""
        assert "denied the request" in refused, refused
    for service in ("pod-builder", "nats", "admission"):
        with held.check(f"kill -9 of {service}: it is restarted, and the graph stays successful"):
            before = await project.container(service)
            os.kill(before["State"]["Pid"], signal.SIGKILL)
            await eventually(_restarted(project, service, before["State"]["Pid"]), f"{service} runs again", 60)
            await eventually(_healthy(project, service), f"{service} is healthy", 60)
            await eventually(_successful(project), "the graph is successful", 60)


async def remove(project: Project, held: Held) -> None:
    """The last check."""
    with held.check("podman-compose down --volumes leaves no container, volume or network"):
        await project.compose("down", "--volumes")
        mine = f"--filter=label=com.docker.compose.project={PROJECT}"
        assert not (await project.podman("ps", "--all", "--quiet", mine)).split()
        assert not (await project.podman("volume", "ls", "--quiet", mine)).split()
        networks = (await project.podman("network", "ls", "--format={{.Name}}")).split()
        assert [name for name in networks if name.startswith(PROJECT)] == []


def _restarted(project: Project, service: str, before: int) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        state = (await project.container(service))["State"]
        return bool(state["Running"] and state["Pid"] != before)

    return check


def _healthy(project: Project, service: str) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        # podman schedules health checks by systemd, which not every machine has.
        await project.podman("healthcheck", "run", (await project.container(service))["Id"])
        return True

    return check


def _successful(project: Project) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        graph = json.loads(await project.kubectl("get", "dgd", EXAMPLE.stem, "--output=json"))
        status = graph.get("status", {})
        assert status.get("state") == "successful", status
        return bool(status["observedGeneration"] == graph["metadata"]["generation"])

    return check


def options() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e_compose", description=__doc__)
    parser.add_argument("--built", action="store_true", help="use the images that the last run built")
    return parser.parse_args()


async def main() -> int:
    """Load the images and run the checks; returns the exit code."""
    programs, held = Programs(), Held("compose")
    with tempfile.TemporaryDirectory(prefix="dynamo-compose-") as folder:
        project = Project(await programs.obtain("kubectl"), Path(folder))
        for archive in await archives(programs):
            await project.podman("load", "--quiet", "--input", str(archive))
        # Containers of a killed run would start again with their old data.
        with contextlib.suppress(CommandError):
            await project.compose("down", "--volumes")
        try:
            await checks(project, held)
        finally:
            await remove(project, held)
    return held.end()


if __name__ == "__main__":
    options()
    sys.exit(asyncio.run(main()))
