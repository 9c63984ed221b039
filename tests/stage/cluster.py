"""The stage: a control plane, NATS, etcd, and the platform's services as processes, each as its own user."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynamo_ctl import credentials
from dynamo_ctl.commands.crds.definitions import install_definitions
from dynamo_devcluster import ControlPlane, ControlPlaneOptions, EtcdServer, NatsServer, NatsServerOptions, Programs
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import NAMESPACES
from dynamo_shared.bus import permissions, server_config
from dynamo_shared.bus.sizes import MAX_PAYLOAD
from dynamo_shared.leases.password import USER, require_password
from dynamo_shared.wire import subjects

from .api import Api
from .service import Service, service

SERVICES = ("admission", "watcher", "pod-builder", "scaler", "model-discovery", "profiler", "planner", "image-builder")
CLUSTER = "stage"
#: The namespace of the Secret with the webhooks' certificate.
SYSTEM = "dynamo-system"
READY_WITHIN = 120.0


@dataclass(frozen=True, slots=True)
class StageOptions:
    """What the stage has. `platform` is added to that section of each service's settings, `sections` are others.

    `definitions`: CustomResourceDefinitions of other projects.
    """

    replicas: int = 1
    platform: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, Any] = field(default_factory=dict)
    definitions: Sequence[KubeObject] = ()
    plane: dict[str, Any] = field(default_factory=dict)
    nats: dict[str, Any] = field(default_factory=dict)
    """further NatsServerOptions"""
    starting: Callable[[Sequence[Service]], None] = lambda _: None
    """called with the services before they start"""
    lease_ttl: str = "10s"
    etcd_password: bool = True
    """a wiped etcd loses its users"""


@dataclass(slots=True)
class Stage:
    """Everything that runs."""

    folder: Path
    plane: ControlPlane
    nats: NatsServer
    etcd: EtcdServer
    admin: Api
    services: list[Service]
    credentials: dict[str, dict[str, str]] = field(default_factory=dict)
    """NATS credentials: user and password, by the name of the user"""

    def named(self, name: str) -> list[Service]:
        """All replicas of a service."""
        return [each for each in self.services if each.name == name]


@asynccontextmanager
async def stage(options: StageOptions) -> AsyncIterator[Stage]:
    """The stage, ready; logs stay in a temporary folder during the block."""
    programs = Programs()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dynamo-stage-")))
        plane = await stack.enter_async_context(
            ControlPlane(ControlPlaneOptions(prepare=install_definitions, **options.plane), programs)
        )
        passwords = credentials.load_or_create(folder / "credentials", (*permissions.USERS, USER))
        nats = await stack.enter_async_context(
            NatsServer(await programs.obtain("nats-server"), folder / "nats", _nats_options(passwords, options.nats))
        )
        etcd = await stack.enter_async_context(EtcdServer(await programs.obtain("etcd"), folder / "etcd"))
        if options.etcd_password:
            await require_password(etcd.url, passwords[USER])
        admin = await stack.enter_async_context(Api(plane.kubeconfig))
        await admin.create(namespace(SYSTEM))
        await admin.create_all(options.definitions)
        services = [
            _service(options, (plane, nats, etcd), folder, name, str(replica))
            for name in SERVICES
            for replica in range(1, options.replicas + 1)
        ]
        options.starting(services)
        for each in services:
            stack.push_async_callback(each.process.stop)
        await asyncio.gather(*(each.process.start() for each in services))
        known = {
            user: {"user": user, "password": passwords[user], "inbox_prefix": subjects.inbox_prefix(user)}
            for user in permissions.USERS
        }
        up = Stage(folder, plane, nats, etcd, admin, services, known)
        await until_ready(up.services)
        yield up


def _nats_options(passwords: dict[str, str], more: dict[str, Any]) -> NatsServerOptions:
    users = {user: passwords[user] for user in permissions.USERS}
    return NatsServerOptions(authorization=server_config.authorization(CLUSTER, users), max_payload=MAX_PAYLOAD, **more)


def _identity(folder: Path, name: str) -> dict[str, str]:
    """A service's NATS user; admission has none, and needs none."""
    if name not in permissions.USERS:
        return {}
    return {"user": name, "passwordFile": str(folder / "credentials" / name)}


async def until_ready(services: Sequence[Service], within: float = READY_WITHIN) -> None:
    """Return when every process is ready; AssertionError with its answer otherwise."""
    waiting = {each.id: each for each in services}
    said: dict[str, str] = {}
    deadline = asyncio.get_running_loop().time() + within
    while waiting:
        for name, each in list(waiting.items()):
            try:
                status, body = await each.http.request("GET", "/readyz")
            except OSError as error:
                said[name] = str(error)
                continue
            said[name] = body.decode(errors="replace")
            if status == 200:
                del waiting[name]
        assert asyncio.get_running_loop().time() < deadline, {name: said[name] for name in waiting}
        await asyncio.sleep(0.1)


def namespace(name: str) -> KubeObject:
    """A Namespace."""
    return {**NAMESPACES.type_meta, "metadata": {"name": name}}


def user_of(name: str, replica: str) -> str:
    """The user name of a replica, which the audit log records."""
    return f"dynamo:{name}:{replica}"


def _service(
    options: StageOptions, servers: tuple[ControlPlane, NatsServer, EtcdServer], folder: Path, name: str, replica: str
) -> Service:
    plane, nats, etcd = servers
    users = [user_of(each, str(number)) for each in SERVICES for number in range(1, options.replicas + 1)]
    # The tests check the writer of each object, not its rights.
    kubeconfig = plane.user_kubeconfig(user_of(name, replica), ("system:masters",))
    platform: dict[str, Any] = {
        "clusterName": CLUSTER,
        "nats": {"servers": [nats.url], **_identity(folder, name)},
        "etcd": {
            "endpoints": [etcd.url],
            "leaseTtl": options.lease_ttl,
            **({"user": USER, "passwordFile": str(folder / "credentials" / USER)} if options.etcd_password else {}),
        },
        "replicas": options.replicas,
        **options.platform,
        "admission": {"namespace": SYSTEM, "operators": users, **options.platform.get("admission", {})},
    }
    return service(name, replica, folder / "services", kubeconfig, platform, sections=options.sections)
