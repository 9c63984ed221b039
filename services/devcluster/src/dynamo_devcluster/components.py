"""Command lines of the Kubernetes programs. Pure: options and paths in, arguments out."""

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from .certs import KeyPair
from .options import ControlPlaneOptions
from .ports import LOOPBACK

AUDIT_POLICY = Path(__file__).parent / "audit-policy.yaml"
#: Addresses of simulated pods.
POD_CIDR = "10.128.0.1/16"
#: The wildcard address by IP version.
WILDCARD = {4: "0.0.0.0", 6: "::"}  # noqa: S104 - pods reach it from a network of the node alone
ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True)
class Files:
    """Certificates, keys and kubeconfig files of the programs."""

    ca: KeyPair
    admin: KeyPair
    serving: KeyPair
    tokens_private: Path
    tokens_public: Path
    kubeconfig: Path


def api_server(options: ControlPlaneOptions, files: Files, port: int, etcd_url: str) -> list[str]:
    """Arguments of kube-apiserver."""
    disabled = []
    if not options.controller_manager:
        # This plugin refuses pods without the default ServiceAccount, which the controller manager creates.
        disabled.append("ServiceAccount")
    if options.kwok_nodes:
        # This plugin taints new nodes until the node lifecycle controller reports them ready; simulated nodes are ready
        # at once.
        disabled.append("TaintNodesByCondition")
    arguments = [
        f"--etcd-servers={etcd_url}", f"--secure-port={port}",
        *_network_arguments(options, files),
        f"--service-cluster-ip-range={options.service_cidr}",
        "--anonymous-auth=true", "--allow-privileged=true",
        f"--client-ca-file={files.ca.certificate}",
        f"--tls-cert-file={files.serving.certificate}", f"--tls-private-key-file={files.serving.key}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={files.tokens_public}",
        f"--service-account-signing-key-file={files.tokens_private}",
        # Without this, watches would delay a stopping server for a minute.
        "--shutdown-watch-termination-grace-period=1s",
        "--profiling=false",
    ]  # fmt: skip
    if disabled:
        arguments.append(f"--disable-admission-plugins={','.join(disabled)}")
    return [*arguments, *options.api_server_arguments]


def _network_arguments(options: ControlPlaneOptions, files: Files) -> list[str]:
    if not options.node_address:
        return [
            f"--bind-address={LOOPBACK}", f"--advertise-address={LOOPBACK}",
            # A loopback address is not a valid endpoint of the "kubernetes" Service.
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
        ]  # fmt: skip
    return [
        f"--bind-address={WILDCARD[ip_address(options.node_address).version]}",
        f"--advertise-address={options.node_address}",
        "--authorization-mode=Node,RBAC",
        # The kubelet's name is not in DNS, and the kubelet accepts the administrator's certificate of the local CA.
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={files.admin.certificate}", f"--kubelet-client-key={files.admin.key}",
    ]  # fmt: skip


def audit(log: Path) -> list[str]:
    """Arguments of kube-apiserver for an audit log without rotation, because readers read only one file."""
    limits = ["--audit-log-maxsize=0", "--audit-log-maxage=0", "--audit-log-maxbackup=0"]
    return [f"--audit-policy-file={AUDIT_POLICY}", f"--audit-log-path={log}", *limits]


def controller_manager(options: ControlPlaneOptions, files: Files, port: int) -> list[str]:
    """Arguments of kube-controller-manager: every default controller, with one shared client."""
    return [
        *_client(files, port),
        f"--service-account-private-key-file={files.tokens_private}",
        f"--root-ca-file={files.ca.certificate}",
        f"--cluster-signing-cert-file={files.ca.certificate}", f"--cluster-signing-key-file={files.ca.key}",
        "--use-service-account-credentials=false",
        # On a busy machine KWOK renews no leases for a minute. Pods of a node that counts as lost are not ready, and KWOK
        # does not make them ready again.
        "--node-monitor-grace-period=10m",
        *options.controller_manager_arguments,
    ]  # fmt: skip


def scheduler(options: ControlPlaneOptions, files: Files, port: int) -> list[str]:
    """Arguments of kube-scheduler."""
    return [*_client(files, port), *options.scheduler_arguments]


def kwok(files: Files, port: int, stages: Path) -> list[str]:
    """Arguments of kwok, which manages every node."""
    return [
        f"--kubeconfig={files.kubeconfig}",
        f"--config={stages}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        f"--cidr={POD_CIDR}",
        f"--server-address={LOOPBACK}:{port}",
    ]


def _client(files: Files, port: int) -> list[str]:
    # There is only one replica; leader election would only delay a restart.
    return [
        f"--kubeconfig={files.kubeconfig}",
        f"--authentication-kubeconfig={files.kubeconfig}", f"--authorization-kubeconfig={files.kubeconfig}",
        f"--bind-address={LOOPBACK}", f"--secure-port={port}",
        f"--tls-cert-file={files.serving.certificate}", f"--tls-private-key-file={files.serving.key}",
        "--leader-elect=false", "--profiling=false",
    ]  # fmt: skip
