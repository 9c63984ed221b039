"""The admission service on a separate control plane, because webhooks apply to a whole cluster.

`admission_platform` runs the service in this process, `admission_process` as `dynamoctl run admission`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamo_admission.app import AdmissionService
from dynamo_ctl import webhooks
from dynamo_ctl.commands.bootstrap.webhook_check import refuse
from dynamo_ctl.errors import CtlError
from dynamo_ctl.settings import with_platform
from dynamo_devcluster import free_port
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, SECRETS, ObjectKey
from dynamo_shared.kube import KubeClient, KubeError, NotFound
from dynamo_shared.runtime import Running, Service, Settings, running

from tests.building.control_plane import WITHOUT_CONTROLLERS, prepared
from tests.building.objects import object_of
from tests.building.services import configuration, service_process

from .platform import eventually, settings

READY_WITHIN = 60.0
ALPHA = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1")


@dataclass(frozen=True, slots=True)
class Admission:
    """Active webhooks.

    `port` is the listener's, `url` the registered address; `running` is None for a separate process.
    """

    kubeconfig: Path
    port: int
    url: str
    metrics_port: int
    running: Running | None = None
    pid: int = 0


@asynccontextmanager
async def bare_control_plane(programs: Programs | None = None, **options: Any) -> AsyncIterator[ControlPlane]:
    """etcd and kube-apiserver with the platform's CRDs, enough for admission. There are no controllers."""
    programs = programs or Programs()
    async with ControlPlane(await prepared(programs, **WITHOUT_CONTROLLERS, **options), programs) as plane:
        yield plane


def admission_settings(kubeconfig: Path, port: int, url: str = "", **extra: str) -> Settings:
    """Settings of the service at a local port; `extra` are DYNAMO_ variables without their prefix.

    `url` is the address for the API server, if it differs from the port.
    """
    values = {"PLATFORM__ADMISSION__DRAIN": "0s", "PLATFORM__ADMISSION__REFRESH": "1s", **extra}
    # Nothing listens there: the service needs no NATS.
    configured = webhooks.on_loopback(settings(kubeconfig, "nats://127.0.0.1:9", **values), port)
    admission = configured.platform.admission
    return with_platform(configured, admission=admission.model_copy(update={"url": url or admission.url}))


@asynccontextmanager
async def admission_platform(
    control_plane: ControlPlane,
    *,
    parts: list[Service] | None = None,
    port: int = 0,
    url: str = "",
    called: bool = True,
    **extra: str,
) -> AsyncIterator[Admission]:
    """The service in this process, registered, ready and called by the API server; `parts` adds other services.

    The API server learns of a registration by its own watch, after the service is ready; until then it calls the
    previous webhooks. This does not wait for that if there is a `url`, which becomes valid later, or if the service is
    not `called`.
    """
    port = port or free_port()
    if not parts:
        # It does not need etcd either, though etcd is configured.
        extra = {"PLATFORM__ETCD__ENDPOINTS": "http://127.0.0.1:9", **extra}
    configured = admission_settings(control_plane.kubeconfig, port, url, **extra)
    await _make_namespace(control_plane.kubeconfig, configured)
    async with running([AdmissionService(), *(parts or ())], configured) as up:
        await up.ready(READY_WITHIN)
        registered = configured.platform.admission.url
        if called and not url:
            await until_called(control_plane.kubeconfig, extra.get("NAMESPACE__RESTRICTED", ""))
        yield Admission(control_plane.kubeconfig, port, registered, up.metrics_port, running=up)


async def until_called(kubeconfig: Path, restricted: str = "") -> None:
    """Return once the API server calls the webhooks for graphs, and converts both versions with them.

    A platform of one namespace does not convert.
    """
    namespace = restricted or "default"
    graph = object_of(ALPHA, "called", namespace, spec={"services": {"Frontend": {"componentType": "frontend"}}})

    async with await KubeClient.open(kubeconfig=kubeconfig, field_manager="dynamo-tests") as kube:

        async def called() -> bool:
            try:
                await refuse(kube, namespace)
                if not restricted:
                    await kube.create(ALPHA, graph, dry_run=True)
            except (CtlError, KubeError):
                return False
            return True

        await eventually(called, "the API server calls the webhooks")


@asynccontextmanager
async def admission_process(kubeconfig: Path, folder: Path, **extra: Any) -> AsyncIterator[Admission]:
    """`dynamoctl run admission` in a separate process, registered and ready. Its log is `folder/admission.log`.

    `extra` are entries of the section `platform.admission`.
    """
    port, health, metrics = free_port(), free_port(), free_port()
    own = {"url": f"https://127.0.0.1:{port}", "namespace": webhooks.NAMESPACE, "drain": "0s", **extra}
    platform = {
        "kubernetes": {"kubeconfig": str(kubeconfig)},
        "nats": {"servers": ["nats://127.0.0.1:9"]},
        "admission": own,
    }
    configured = configuration(health, metrics, port, platform)
    config = folder / "config.yaml"
    admission = service_process(
        "admission", ("admission",), config, configured, ready_within=READY_WITHIN, stop_within=30.0
    )
    await _make_namespace(kubeconfig, admission_settings(kubeconfig, port))
    await admission.start()
    try:
        yield Admission(kubeconfig, port, own["url"], metrics, pid=admission.pid or 0)
    finally:
        await admission.stop()


async def authorities(kube: KubeClient) -> bytes:
    """The PEM bundle that clients of the webhooks trust; empty if the configuration has none."""
    try:
        secret = await kube.get(SECRETS, ObjectKey(webhooks.NAMESPACE, "webhook-server-cert"))
    except NotFound:
        return b""
    return str(secret["data"].get("ca.crt", "")).encode()


async def _make_namespace(kubeconfig: Path, configured: Settings) -> None:
    async with await KubeClient.open(kubeconfig=kubeconfig, field_manager="dynamo-tests") as client:
        await webhooks.make_namespace(client, configured)
