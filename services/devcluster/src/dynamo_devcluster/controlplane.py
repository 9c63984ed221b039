"""A Kubernetes control plane on 127.0.0.1: etcd, the API server, and optionally controllers, scheduler and KWOK nodes.

Any number can run at once. All data is below one directory, and a second start on it continues with that data.
"""

import contextlib
import ipaddress
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Self

from . import components
from .catalog import KUBERNETES_VERSION
from .certs import CertificateAuthority, KeyPair, signing_key
from .kubeconfig import write_kubeconfig
from .locks import exclusive
from .nodes import create_nodes
from .options import ControlPlaneOptions
from .ports import LOOPBACK, PortFile
from .probe import LocalHttp, client_tls
from .process import ManagedProcess
from .programs import Programs
from .servers import EtcdServer

STAGES = Path(__file__).parent / "stages" / "fast.yaml"
_ADMIN = "admin"
_SERVICE = "kubernetes.default.svc"
_ADMIN_GROUP = "system:masters"


class ControlPlane:
    """A control plane that runs during `async with ControlPlane(options, programs) as cp:`; `cp.kubeconfig` is its
    administrator's.

    Obtains missing programs first (see Programs), which may take minutes the first time.
    """

    def __init__(self, options: ControlPlaneOptions | None = None, programs: Programs | None = None) -> None:
        self.options = options if options is not None else ControlPlaneOptions()
        self._programs = programs if programs is not None else Programs()
        self._temporary = self.options.directory is None
        self.directory = (
            Path(tempfile.gettempdir()) / f"dynamo-cluster-{secrets.token_hex(6)}"
            if self.options.directory is None
            else self.options.directory.absolute()
        )
        self._directory_lock = contextlib.ExitStack()
        self.kubeconfig = self.directory / "kubeconfig"
        self._started: list[ManagedProcess] = []
        self._ports: list[PortFile] = []
        self.etcd: EtcdServer
        self.api_server: ManagedProcess
        """tests may stop or kill it: etcd has its data, and it starts again on the same port"""
        self.controller_manager: ManagedProcess | None = None
        self.scheduler: ManagedProcess | None = None
        self.kwok: ManagedProcess | None = None
        self.certificates: CertificateAuthority
        self.url = ""
        self._http: LocalHttp

    async def start(self) -> None:
        """Start everything and wait until it is ready. If a part fails, the others are stopped again."""
        try:
            paths = await self._programs.obtain_all(self.options.programs)
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory_lock.enter_context(exclusive(self.directory))
            self._assemble(paths)
            for process in self.parts():
                # Recorded first: a part that fails to start must be stopped, too.
                self._started.append(process)
                await process.start()
                if process is self.api_server:
                    await self._prepare()
        except BaseException:
            await self.stop()
            raise

    async def _prepare(self) -> None:
        if self.options.prepare is not None:
            await self.options.prepare(self.kubeconfig)
        if self.options.kwok_nodes:
            version = f"v{KUBERNETES_VERSION}"
            await create_nodes(self._http, self.options.kwok_nodes, self.options.node_shape, version)

    async def stop(self) -> None:
        """Stop everything, clients before servers; removes the directory if it is temporary."""
        while self._started:
            await self._started.pop().stop()
        while self._ports:
            self._ports.pop().release()
        self._directory_lock.close()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def user_kubeconfig(self, user: str, groups: tuple[str, ...] = ()) -> Path:
        """A kubeconfig of another user (client certificate), for tests of RBAC. Without bindings the user has no rights."""
        name = user.replace(":", "-").replace("/", "-")
        pair = self.certificates.client(f"user-{name}", user, groups)
        return write_kubeconfig(
            self.directory / f"kubeconfig-{name}", self.url, self.certificates.certificate, pair, user
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _audit(self) -> list[str]:
        folder = self.options.audit_folder
        if folder is None:
            return []
        folder.mkdir(parents=True, exist_ok=True)
        # A unique file name, because several servers write to the same folder.
        return components.audit(folder / f"audit-{secrets.token_hex(6)}.jsonl")

    def parts(self) -> list[ManagedProcess]:
        """The processes in the order of their start. Call it only after `start`."""
        optional = (self.controller_manager, self.scheduler, self.kwok)
        return [self.etcd, self.api_server, *(part for part in optional if part is not None)]

    def _assemble(self, paths: dict[str, Path]) -> None:
        options = self.options
        # Read the ports only now: another process may have used the directory since this object was created.
        ports = PortFile(self.directory / "ports.json")
        pki = self.directory / "pki"
        self.certificates = CertificateAuthority(pki)
        admin = self.certificates.client(_ADMIN, groups=(_ADMIN_GROUP,))
        serving = self.certificates.server("serving", _serving_names(options))
        private, public = signing_key(pki)
        port = ports.port("api-server", options.api_server_port)
        self.url = f"https://{LOOPBACK}:{port}"
        write_kubeconfig(self.kubeconfig, self.url, self.certificates.certificate, admin, _ADMIN)
        files = components.Files(self.certificates.pair, admin, serving, private, public, self.kubeconfig)
        self._http = self._client(port, admin)

        self.etcd = EtcdServer(paths["etcd"], self.directory / "etcd")
        if options.data is not None and not self.etcd.data.exists():
            shutil.copytree(options.data, self.etcd.data)
        self._ports += [ports, self.etcd.ports]
        arguments = [*components.api_server(options, files, port, self.etcd.url), *self._audit()]
        self.api_server = self._process(paths, "kube-apiserver", arguments, self._http, "/readyz")
        if options.controller_manager:
            port = ports.port("controller-manager")
            arguments = components.controller_manager(options, files, port)
            self.controller_manager = self._process(
                paths, "kube-controller-manager", arguments, self._client(port, admin), "/healthz"
            )
        if options.scheduler:
            port = ports.port("scheduler")
            arguments = components.scheduler(options, files, port)
            self.scheduler = self._process(paths, "kube-scheduler", arguments, self._client(port, admin), "/healthz")
        if options.kwok_nodes:
            port = ports.port("kwok")
            arguments = components.kwok(files, port, STAGES)
            self.kwok = self._process(paths, "kwok", arguments, LocalHttp(port), "/healthz")

    def _client(self, port: int, client: KeyPair) -> LocalHttp:
        return LocalHttp(port, client_tls(self.certificates.certificate, client))

    def _process(
        self, paths: dict[str, Path], name: str, arguments: list[str], http: LocalHttp, health: str
    ) -> ManagedProcess:
        return ManagedProcess(
            name,
            [paths[name], *arguments],
            self.directory / "logs" / f"{name}.log",
            lambda: http.ok(health),
            environ={**_GO_ENVIRONMENT, **os.environ},
        )


# With Go's defaults the API server spends a third of its CPU time on garbage collection; these values cost 0.3 GiB.
_GO_ENVIRONMENT = {"GOGC": "300", "GOMEMLIMIT": "2GiB"}


def _serving_names(options: ControlPlaneOptions) -> tuple[str, ...]:
    """Subject alternative names of the API server. Pods use its DNS name, or the first address of `service_cidr`."""
    names = ("localhost", LOOPBACK, "kubernetes", _SERVICE)
    if not options.node_address:
        return names
    first = ipaddress.ip_network(options.service_cidr)[1]
    return (*names, f"{_SERVICE}.cluster.local", str(first), options.node_address)
