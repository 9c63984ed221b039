"""A local control plane, NATS, etcd, and the platform as a separate process, so that its log stays out of the table."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import yaml
from dynamo_devcluster import (
    ControlPlane,
    ControlPlaneOptions,
    ManagedProcess,
    Programs,
    Progress,
    free_port,
)
from dynamo_devcluster.ports import is_free
from dynamo_devcluster.probe import PROBE_WITHIN, LocalHttp
from dynamo_devcluster.progress import step
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.settings.platform import Etcd, Nats

from dynamo_ctl import webhooks
from dynamo_ctl.commands.crds.definitions import DEFINITIONS_MANAGER, install_definitions
from dynamo_ctl.commands.up.servers import embedded, supervised_servers
from dynamo_ctl.settings import with_cluster, with_platform


@asynccontextmanager
async def local_platform(state: Path, cluster: str, steps: Progress) -> AsyncIterator[Settings]:
    """Start all parts, with state and logs in a folder. Yields the platform's settings when it is ready.

    Raises LocalClusterError if a program cannot be obtained or does not start.
    """
    programs = Programs(steps)
    plane = ControlPlane(ControlPlaneOptions(directory=state / "kubernetes", prepare=install_definitions), programs)
    # Before the start, so that the measured start time does not include the build.
    await programs.obtain_all([*plane.options.programs, "nats-server"])
    async with AsyncExitStack() as stack:
        with step(steps, "starting Kubernetes, with two simulated nodes of eight GPUs"):
            await stack.enter_async_context(plane)
        await stack.enter_async_context(supervised_servers(*plane.parts()))
        with step(steps, "starting NATS, etcd and the platform"):
            settings = await stack.enter_async_context(platform_on(plane.kubeconfig, state, cluster, programs))
        yield settings


@asynccontextmanager
async def platform_on(kubeconfig: Path, state: Path, cluster: str, programs: Programs) -> AsyncIterator[Settings]:
    """Run the platform with its own NATS and etcd on a local control plane that has the definitions. Yields when ready."""
    async with AsyncExitStack() as stack:
        settings = with_platform(with_cluster(Settings(), kubeconfig, None), cluster_name=cluster)
        settings = await stack.enter_async_context(embedded(settings, state, programs))
        settings = webhooks.on_loopback(settings, free_port())
        # The usual port gives an address that is easy to type, but another demo may use it.
        if not is_free(settings.platform.dynadmin.port):
            moved = settings.platform.dynadmin.model_copy(update={"port": free_port()})
            settings = with_platform(settings, dynadmin=moved)
        async with await KubeClient.open(kubeconfig=kubeconfig, field_manager=DEFINITIONS_MANAGER) as client:
            await webhooks.make_namespace(client, settings)
        await stack.enter_async_context(_process(state, settings))
        yield settings


@asynccontextmanager
async def _process(state: Path, settings: Settings) -> AsyncIterator[None]:
    health = free_port()
    config = state / "config.yaml"
    config.write_text(yaml.safe_dump(_configuration(settings, health, free_port()), sort_keys=False))
    probe = LocalHttp(health)
    process = ManagedProcess(
        "platform",
        [sys.executable, "-m", "dynamo_ctl", "run", "all", "--config", config],
        state / "platform.log",
        lambda: is_ready(probe),
    )
    await process.start()
    try:
        async with supervised_servers(process):
            yield
    finally:
        await process.stop()


async def is_ready(probe: LocalHttp) -> bool:
    """Whether the platform works. Raises OSError that names the parts that do not work yet."""
    _, body = await probe.request("GET", "/readyz", within=PROBE_WITHIN)
    report = json.loads(body)
    if not report["ready"]:
        failed = (f"{name}: {each['message']}" for name, each in report["parts"].items() if each["state"] == "failed")
        raise OSError("; ".join(failed))
    return True


def _configuration(settings: Settings, health: int, metrics: int) -> dict[str, object]:
    platform = settings.platform
    return {
        "apiVersion": settings.api_version,
        "kind": settings.kind,
        "server": {
            "healthProbe": {"bindAddress": webhooks.LOOPBACK, "port": health},
            "metrics": {"bindAddress": webhooks.LOOPBACK, "port": metrics, "secure": False},
            "webhook": {"host": webhooks.LOOPBACK, "port": settings.server.webhook.port},
        },
        "logging": {"format": "console"},
        "platform": {
            "clusterName": platform.cluster_name,
            "kubernetes": {"kubeconfig": str(platform.kubernetes.kubeconfig)},
            "nats": {"servers": list(platform.nats.servers), **_login(platform.nats)},
            "etcd": {"endpoints": list(platform.etcd.endpoints), **_login(platform.etcd)},
            "dynadmin": {"host": webhooks.LOOPBACK, "port": platform.dynadmin.port, "drain": 0.0},
            "admission": platform.admission.model_dump(mode="json", include={"url", "namespace", "drain"}),
        },
    }


def _login(server: Nats | Etcd) -> dict[str, str]:
    return {"user": server.user, "passwordFile": str(server.password_file)} if server.user else {}
