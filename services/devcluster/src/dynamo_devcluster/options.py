"""The parts of a local control plane."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from .nodes import NodeShape


def _audit_folder() -> Path | None:
    named = os.environ.get("DYNAMO_AUDIT_LOGS")
    return Path(named) if named else None


@dataclass(frozen=True)
class ControlPlaneOptions:
    """Parts and ports of a local control plane. Port 0 picks a free port, or the port remembered in `directory`.

    `directory` keeps all state and may be started again; without it a temporary folder is used and removed.
    `kwok_nodes` 0 means no KWOK. Otherwise it plays `stages/fast.yaml`.
    `prepare` is called with the kubeconfig once the API server serves and before anything else starts: kinds that are
    installed there are known to the garbage collector at once, which looks for new ones only every 30 seconds.
    `data` is etcd's data to begin with, a copy of that of another cluster: of one without, the API server creates its own objects
    first, which takes a third of its start.
    `node_address` is an address of this machine at which pods on a real node reach the API server, which then listens on
    every address; without it nothing listens on anything but 127.0.0.1.
    `audit_folder` gets the API server's audit log, a file of its own each time (default: $DYNAMO_AUDIT_LOGS, else none).
    `*_arguments` are added to the programs' command lines, where a later argument wins.
    """

    directory: Path | None = None
    data: Path | None = None
    controller_manager: bool = True
    scheduler: bool = True
    kwok_nodes: int = 2
    node_shape: NodeShape = field(default_factory=NodeShape)
    api_server_port: int = 0
    # A /24 has addresses for only 250 Services; /12 is the largest range that is allowed for IPv4.
    service_cidr: str = "10.0.0.0/12"
    node_address: str = ""
    audit_folder: Path | None = field(default_factory=_audit_folder)
    api_server_arguments: tuple[str, ...] = ()
    controller_manager_arguments: tuple[str, ...] = ()
    scheduler_arguments: tuple[str, ...] = ()
    prepare: Callable[[Path], Awaitable[object]] | None = None

    @property
    def programs(self) -> tuple[str, ...]:
        """Names of the required programs."""
        names = ["etcd", "kube-apiserver"]
        names += ["kube-controller-manager"] if self.controller_manager else []
        names += ["kube-scheduler"] if self.scheduler else []
        names += ["kwok"] if self.kwok_nodes else []
        return tuple(names)
