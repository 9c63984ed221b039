"""The configuration of a node's programs. Pure: takes addresses and folders, returns texts of files."""

import json
import os
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import yaml

NAME = "dynamo-node"
#: The same as in most clusters, because NetworkPolicies may name it.
API_SERVER_PORT = 6443
DOMAIN = "cluster.local"
PAUSE_IMAGE = "dynamo.local/pause:1.0.0"
POLICIES_HEALTH_PORT = 20244
PLUGINS = Path("/usr/lib/cni")


@dataclass(frozen=True)
class Network:
    """All addresses of a one-node cluster of one IP family: the node's, its pods', those of Services.

    The node's address is reserved for documentation (RFC 5737, RFC 3849), so no network of a machine has it.
    """

    node: str
    pods: str
    services: str

    @property
    def family(self) -> int:
        """4 or 6"""
        return ip_address(self.node).version

    @property
    def everywhere(self) -> str:
        """All addresses of the family."""
        return "0.0.0.0/0" if self.family == 4 else "::/0"


NETWORKS = {
    "ipv4": Network("192.0.2.10", "10.128.0.0/16", "10.0.0.0/12"),
    "ipv6": Network("2001:db8::10", "fd00:10::/64", "fd00:20::/112"),
}
#: The environment variable that names one of them; all processes of a run have it.
FAMILY_VARIABLE = "DYNAMO_NODE_FAMILY"
NETWORK = NETWORKS[os.environ.get(FAMILY_VARIABLE, "ipv4")]


@dataclass(frozen=True)
class Layout:
    """The node's files, below one folder with a short path: socket paths have at most 107 characters."""

    folder: Path

    @property
    def containerd_socket(self) -> Path:
        """The socket for kubelet and `ctr`."""
        return self.folder / "containerd.sock"

    @property
    def images(self) -> Path:
        """Image archives, unpacked images, and the writable layers of containers."""
        return self.folder / "containerd"

    @property
    def kubelet_root(self) -> Path:
        """Volumes and certificates of the kubelet."""
        return self.folder / "kubelet"

    @property
    def networks(self) -> Path:
        """The folder of the CNI configuration."""
        return self.folder / "cni"

    @property
    def volumes(self) -> Path:
        """A folder for each volume that pods may claim."""
        return self.folder / "volumes"

    @property
    def audit(self) -> Path:
        """Audit logs of the API server."""
        return self.folder / "audit"

    @property
    def logs(self) -> Path:
        """Logs of the node's programs, and those of pods below `pods`."""
        return self.folder / "logs"


def containerd(layout: Layout) -> str:
    """config.toml of containerd 1.6.

    In some environments root may not lower a process's OOM score (no CAP_SYS_RESOURCE), hence `restrict_oom_score_adj`.
    """
    plugin = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
root = "{layout.images}"
state = "{layout.folder / "run"}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = "{layout.containerd_socket}"

[{plugin}]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true

[{plugin}.containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"

[{plugin}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[{plugin}.containerd.runtimes.runc.options]
  SystemdCgroup = false

[{plugin}.cni]
  bin_dir = "{PLUGINS}"
  conf_dir = "{layout.networks}"
"""


def network(layout: Layout) -> str:
    """The pods' network: a veth pair from each pod to the node.

    There is no bridge: on a bridge, answers from behind a Service would bypass the address translation.
    """
    data_dir = str(layout.folder / "ipam")
    ranges = [[{"subnet": NETWORK.pods}]]
    ipam = {"type": "host-local", "dataDir": data_dir, "ranges": ranges, "routes": [{"dst": NETWORK.everywhere}]}
    return json.dumps({"cniVersion": "0.4.0", "name": "dynamo", "plugins": [{"type": "ptp", "ipam": ipam}]}, indent=2)


def kubelet(layout: Layout, authority: Path) -> str:
    """KubeletConfiguration: cgroups version 1 or 2, as the machine has; no evictions."""
    return _yaml(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority)},
            },
            "authorization": {"mode": "Webhook"},
            "address": NETWORK.node,
            "readOnlyPort": 0,
            "clusterDomain": DOMAIN,
            "clusterDNS": [NETWORK.node],
            # Nothing outside the cluster is queried.
            "resolvConf": str(layout.folder / "resolv.conf"),
            "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
            "podLogsDir": str(layout.logs / "pods"),
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False,
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "evictionHard": dict.fromkeys(
                (
                    *("memory.available", "nodefs.available", "nodefs.inodesFree"),
                    *("imagefs.available", "imagefs.inodesFree", "pid.available"),
                ),
                "0%",
            ),
            # 100 means never: images are loaded by the tests and cannot be pulled again.
            "imageGCHighThresholdPercent": 100,
        }
    )


def kube_proxy(kubeconfig: Path) -> str:
    """KubeProxyConfiguration; the machine's limits of connection tracking stay unchanged."""
    return _yaml(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "mode": "iptables",
            "clusterCIDR": NETWORK.pods,
            "hostnameOverride": NAME,
            "bindAddress": NETWORK.node,
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "oomScoreAdj": 0,
            "iptables": {"minSyncPeriod": "100ms"},
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
    )


def kube_router(kubeconfig: Path) -> list[str]:
    """Arguments of kube-router as a firewall, for NetworkPolicies only; routes and Services are handled elsewhere."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={NAME}",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--enable-cni=false",
        f"--service-cluster-ip-range={NETWORK.services}",
        f"--enable-ipv4={str(NETWORK.family == 4).lower()}",
        f"--enable-ipv6={str(NETWORK.family == 6).lower()}",
        f"--health-port={POLICIES_HEALTH_PORT}",
        "--iptables-sync-period=30s",
    ]


def volumes(layout: Layout, count: int) -> list[dict[str, Any]]:
    """The default StorageClass and its volumes: folders of the node."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "node", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    return [storage_class, *(_volume(layout.volumes / f"volume-{number}") for number in range(count))]


def _volume(folder: Path) -> dict[str, Any]:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NAME]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": folder.name},
        "spec": {
            "storageClassName": "node",
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def corefile(kubeconfig: Path) -> str:
    """CoreDNS answers for the cluster and refuses all other names."""
    return f"""\
.:53 {{
    bind {NETWORK.node}
    errors
    ready 127.0.0.1:8181
    kubernetes {DOMAIN} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
}}
"""


def addresses(of: Network = NETWORK) -> list[list[str]]:
    """Commands that assign the node's only addresses. No route leads out of its network namespace."""
    family, whole = f"-{of.family}", 32 if of.family == 4 else 128
    return [
        ["ip", "link", "set", "lo", "up"],
        ["ip", family, "address", "add", f"{of.node}/{whole}", "dev", "lo"],
        # Traffic to a Service must leave this namespace before it can be translated.
        ["ip", family, "route", "add", of.services, "dev", "lo", "src", of.node],
        ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1" if of.family == 4 else "net.ipv6.conf.all.forwarding=1"],
    ]


def _yaml(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False)
