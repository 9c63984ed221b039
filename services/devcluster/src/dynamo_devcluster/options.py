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
    """Parts and ports of a local control plane. Port 0 picks a free port, or the port stored in `directory`.

    `directory` has all state, and a later start continues with it; by default it is a temporary folder.
    `data` is etcd's data directory of another cluster, which is copied for a new `directory`: the API server then need
    not create its own objects, a third of its start.
    `kwok_nodes` is the number of nodes that KWOK simulates, with the stages of `stages/fast.yaml`; 0 means no KWOK.
    `prepare` is called with the kubeconfig when the API server is ready, before other programs start: the garbage
    collector then knows the CRDs installed there at once, otherwise after up to 30 seconds.
    `node_address` is an address of this machine at which pods on a real node reach the API server, which then listens on
    all addresses; otherwise all servers listen only on 127.0.0.1.
    `audit_folder` gets an audit log of the API server, a new file at each start (default: $DYNAMO_AUDIT_LOGS, else none).
    `*_arguments` are appended to the programs' command lines, where the last value of a flag is used.
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
