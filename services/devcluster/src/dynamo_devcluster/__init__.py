"""A Kubernetes control plane, etcd and NATS as local processes, without a container engine.

Use it to try the platform on a laptop, and for integration tests. All servers listen only on 127.0.0.1.
"""

from .certs import CertificateAuthority, KeyPair
from .controlplane import ControlPlane
from .errors import (
    ChecksumMismatchError,
    LocalClusterError,
    NotReadyError,
    ProcessDiedError,
    ProgramUnavailableError,
)
from .nodes import NodeShape
from .options import ControlPlaneOptions
from .ports import free_port
from .process import ManagedProcess
from .programs import Programs
from .progress import LineProgress, Progress
from .servers import EtcdServer, NatsServer, NatsServerOptions, ServerTls
from .supervision import supervised

__all__ = [
    "CertificateAuthority",
    "ChecksumMismatchError",
    "ControlPlane",
    "ControlPlaneOptions",
    "EtcdServer",
    "KeyPair",
    "LineProgress",
    "LocalClusterError",
    "ManagedProcess",
    "NatsServer",
    "NatsServerOptions",
    "NodeShape",
    "NotReadyError",
    "ProcessDiedError",
    "ProgramUnavailableError",
    "Programs",
    "Progress",
    "ServerTls",
    "free_port",
    "supervised",
]
