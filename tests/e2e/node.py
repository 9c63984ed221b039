"""A control plane and its real node, in the namespaces of `tests.e2e.confinement`.

`python -m tests.e2e.node` starts one, prints how to reach it, and waits; tests use `Node`.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from dynamo_ctl.commands.crds.definitions import install_definitions
from dynamo_devcluster import ControlPlane, ControlPlaneOptions, LocalClusterError, ManagedProcess, Programs
from dynamo_devcluster.kubeconfig import write_kubeconfig
from dynamo_devcluster.probe import LocalHttp
from dynamo_devcluster.progress import LineProgress
from dynamo_shared.api.resources import NODES, ObjectKey
from dynamo_shared.kube import KubeClient, NotFound

from tests.building.processes import ending

from . import configuration, images
from .configuration import NAME, NETWORK, Layout
from .confined import confined

READY_WITHIN = 120.0
IMPORT_WITHIN = 300.0
COMMAND_WITHIN = 20.0
#: confinement.run sets it for its command.
FOLDER_VARIABLE = "DYNAMO_NODE_FOLDER"


class Node:
    """A one-node cluster that runs pods. `images` are archives, with names to assign or "" to keep their own; they
    include the pause image.

    `volumes` is the number of volumes to claim, `prepare` runs when only the API server runs, `audit` turns on the API
    server's audit log. Use it only inside the namespaces: elsewhere its packet filters would apply to the machine.
    """

    def __init__(
        self,
        images: Sequence[Path] | Mapping[Path, str],
        programs: Programs | None = None,
        folder: Path | None = None,
        *,
        volumes: int = 0,
        prepare: Callable[[Path], Awaitable[object]] | None = install_definitions,
        audit: bool = False,
    ) -> None:
        if folder is None:
            named = os.environ.get(FOLDER_VARIABLE)
            if named is None:
                raise LocalClusterError(
                    "a node needs namespaces of its own: `make e2e-runtime`, or `python -m tests.e2e.node`"
                )
            folder = Path(named)
        self.layout = Layout(folder)
        self._images = images if isinstance(images, Mapping) else dict.fromkeys(images, "")
        self._volumes = volumes
        self._programs = programs if programs is not None else Programs()
        self.plane = ControlPlane(
            ControlPlaneOptions(
                directory=folder / "kubernetes",
                kwok_nodes=0,
                node_address=NETWORK.node,
                service_cidr=NETWORK.services,
                prepare=prepare,
                api_server_port=configuration.API_SERVER_PORT,
                audit_folder=self.layout.audit if audit else None,
            ),
            self._programs,
        )
        self._stack = AsyncExitStack()
        self._started = False
        self.containerd: ManagedProcess
        self.kubelet: ManagedProcess

    @property
    def _mark(self) -> Path:
        return self.layout.folder / "ready"

    @property
    def lent(self) -> bool:
        """Whether a node of another run is used, which must get it back unchanged."""
        return not self._started and self._mark.exists()

    @property
    def kubeconfig(self) -> Path:
        """An administrator's."""
        return self.plane.kubeconfig

    async def start(self) -> None:
        """Start everything and wait until the node is ready. If a part fails, the others are stopped again."""
        self._started = True
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._start_containerd())
                await self._stack.enter_async_context(self.plane)
            await self._start_agents()
            await self._until_ready()
            await self._provide_volumes()
            _write(self._mark, "")
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop everything, the node's agents first. Containers go with the namespaces."""
        self._mark.unlink(missing_ok=True)
        await self._stack.aclose()

    async def kill(self, container: str) -> None:
        """SIGKILL to the first process of a container."""
        await self._ctr("tasks", "kill", "--signal", "SIGKILL", container)

    async def execute(self, pod: dict[str, Any], *command: str) -> str:
        """The output of a command in a pod's only container; LocalClusterError if it fails."""
        meta = pod["metadata"]
        return await self.kubectl("--namespace", meta["namespace"], "exec", meta["name"], "--", *command)

    async def kubectl(self, *arguments: str) -> str:
        """kubectl's output, as the administrator; LocalClusterError if it fails."""
        program = await self._programs.obtain("kubectl")
        return await _output([str(program), "--kubeconfig", str(self.kubeconfig), *arguments], COMMAND_WITHIN)

    async def _start_containerd(self) -> None:
        layout = self.layout
        _write(layout.folder / "containerd.toml", configuration.containerd(layout))
        _write(layout.networks / "10-dynamo.conflist", configuration.network(layout))
        self.containerd = await self._run(
            "containerd", ["containerd", "--config", layout.folder / "containerd.toml"], self._containerd_answers
        )
        for image, name in self._images.items():
            await self._ctr(
                "images", "import", *(("--index-name", name) if name else ()), str(image), within=IMPORT_WITHIN
            )

    async def _start_agents(self) -> None:
        layout, certificates = self.layout, self.plane.certificates
        paths = {
            name: await self._programs.obtain(name) for name in ("kubelet", "kube-proxy", "kube-router", "coredns")
        }
        user = certificates.client("kubelet", f"system:node:{NAME}", ("system:nodes",))
        identity = write_kubeconfig(
            layout.folder / "kubelet.kubeconfig", self.plane.url, certificates.certificate, user, NAME
        )
        _write(layout.folder / "resolv.conf", "")
        _write(layout.folder / "Corefile", configuration.corefile(self.kubeconfig))
        _write(layout.folder / "kube-proxy.yaml", configuration.kube_proxy(self.kubeconfig))
        _write(layout.folder / "kubelet.yaml", configuration.kubelet(layout, certificates.certificate))
        await self._run(
            "coredns", [paths["coredns"], "-conf", layout.folder / "Corefile"], lambda: LocalHttp(8181).ok("/ready")
        )
        self.kubelet = await self._run(
            "kubelet",
            [
                *(paths["kubelet"], "--config", layout.folder / "kubelet.yaml", "--kubeconfig", identity),
                *("--node-ip", NETWORK.node, "--hostname-override", NAME, "--root-dir", layout.kubelet_root),
                *("--cert-dir", layout.kubelet_root / "pki"),
            ],
            lambda: LocalHttp(10248).ok("/healthz"),
        )
        await self._run(
            "kube-proxy",
            [paths["kube-proxy"], "--config", layout.folder / "kube-proxy.yaml"],
            lambda: LocalHttp(10256).ok("/livez"),
        )

        policies = configuration.kube_router(self.kubeconfig)
        await self._run(
            "kube-router",
            [paths["kube-router"], *policies],
            lambda: LocalHttp(configuration.POLICIES_HEALTH_PORT).ok("/healthz"),
        )

    async def _run(self, name: str, command: Sequence[str | Path], ready: object) -> ManagedProcess:
        process = ManagedProcess(name, command, self.layout.logs / f"{name}.log", ready, ready_within=READY_WITHIN)  # type: ignore[arg-type]
        self._stack.push_async_callback(process.stop)
        await process.start()
        return process

    async def _provide_volumes(self) -> None:
        if not self._volumes:
            return
        for number in range(self._volumes):
            (self.layout.volumes / f"volume-{number}").mkdir(parents=True)
        described = json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": configuration.volumes(self.layout, self._volumes)}
        )
        _write(self.layout.folder / "volumes.json", described)
        await self.kubectl("create", "--filename", str(self.layout.folder / "volumes.json"))

    async def _containerd_answers(self) -> bool:
        try:
            await self._ctr("version")
        except LocalClusterError:
            return False
        return True

    async def _ctr(self, *arguments: str, within: float = COMMAND_WITHIN) -> str:
        socket = str(self.layout.containerd_socket)
        return await _output(["ctr", "--address", socket, "--namespace", "k8s.io", *arguments], within)

    async def _until_ready(self) -> None:
        async with (
            await KubeClient.open(kubeconfig=self.kubeconfig, field_manager="dynamo-tests") as client,
            asyncio.timeout(READY_WITHIN),
        ):
            while not await _ready(client):
                await asyncio.sleep(0.1)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


async def _output(command: Sequence[str], within: float) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with ending(process), asyncio.timeout(within):
            output = (await process.communicate())[0].decode(errors="replace")
    except TimeoutError:
        raise LocalClusterError(f"{' '.join(command)} did not end within {within:.0f} s") from None
    if process.returncode:
        raise LocalClusterError(f"{' '.join(command)} failed: {output.strip()}")
    return output


async def _ready(client: KubeClient) -> bool:
    try:
        node = await client.get(NODES, ObjectKey("", NAME))
    except NotFound:
        return False
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


async def _serve() -> None:
    """Start a node with the runtime's image, and wait for the signal to end."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    programs = Programs(LineProgress())
    result = await images.obtain(programs, programs.progress)
    begun = time.monotonic()
    async with Node(result.archives, programs) as node:
        print(f"ready after {time.monotonic() - begun:.1f} s; its image is {result.runtime}; Ctrl-C ends it")
        print("a shell on it, with kubectl:")
        # The first process of the namespaces is the only child of `unshare`.
        inner = f"$(pgrep -P $(pgrep -f '^[^ ]*unshare.*{node.layout.folder}'))"
        kubectl = node.layout.folder / "bin" / "kubectl"
        kubectl.parent.mkdir()
        kubectl.symlink_to(await programs.obtain("kubectl"))
        shell = f"env KUBECONFIG={node.kubeconfig} PATH=$PATH:{kubectl.parent} bash"
        print(f"  nsenter --net --mount --pid --wd --target {inner} {shell}")
        await ended.wait()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    if FOLDER_VARIABLE not in os.environ:
        sys.exit(confined([sys.executable, "-m", "tests.e2e.node"]))
    asyncio.run(_serve())
