"""Stand-ins for the images of NATS and etcd: same names and paths, with the programs that the tests run.

Containers of them behave as those of the registry's images; an environment variable identifies a stand-in.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dynamo_devcluster import Programs
from dynamo_devcluster.cache import default_cache_root
from dynamo_devcluster.certs import signing_key
from dynamo_devcluster.controlplane import STAGES
from dynamo_devcluster.locks import file_lock

from tools.images import archive
from tools.images.archive import Image

NATS = "docker.io/library/nats:2.15.1-alpine"
ETCD = "quay.io/coreos/etcd:v3.6.6"
KWOK_CLUSTER = "registry.k8s.io/kwok/cluster:v0.8.0-k8s.v1.35.5"
PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DYNAMO_STAND_IN": "yes"}
#: Like the official image's entry point: options alone are passed to nats-server.
NATS_ENTRYPOINT = '#!/bin/sh\nset -e\nif [ "${1#-}" != "$1" ]; then set -- nats-server "$@"; fi\nexec "$@"\n'
#: Like that image: a control plane for every client that reaches it; its API on 8080 is plain HTTP without
#: authentication.
CLUSTER = """#!/bin/sh
set -e
cd /cluster
etcd --data-dir=/cluster/etcd --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 &
kube-apiserver --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 --cert-dir=/cluster/pki \\
  --token-auth-file=/cluster/tokens.csv --authorization-mode=AlwaysAllow \\
  --service-cluster-ip-range=10.0.0.0/12 --endpoint-reconciler-type=none \\
  --disable-admission-plugins=TaintNodesByCondition --service-account-issuer=https://kubernetes.default.svc \\
  --service-account-key-file=/cluster/sa.pub --service-account-signing-key-file=/cluster/sa.key &
until kubectl --kubeconfig=/cluster/kubeconfig get --raw=/readyz >/dev/null 2>&1; do sleep 1; done
kube-controller-manager --kubeconfig=/cluster/kubeconfig --leader-elect=false --cert-dir=/cluster/pki \\
  --service-account-private-key-file=/cluster/sa.key &
kube-scheduler --kubeconfig=/cluster/kubeconfig --leader-elect=false --cert-dir=/cluster/pki &
kwok --kubeconfig=/cluster/kubeconfig --config=/cluster/stages.yaml --manage-all-nodes=true \\
  --node-lease-duration-seconds=40 --cidr=10.128.0.1/16 &
exec kubectl --kubeconfig=/cluster/kubeconfig proxy --port=8080 --address=0.0.0.0 --disable-filter
"""
CLUSTER_KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: stand-in}}]
current-context: c
"""
KWOKCTL = '#!/bin/sh\nshift\nexec kubectl --server=http://127.0.0.1:8080 "$@"\n'
APPLETS = ("sh", "wget", "cat", "ls", "sleep", "nc")


@dataclass(frozen=True)
class StandIn:
    """An image: its programs, their paths in it, and further steps in its root."""

    image: Image
    programs: Mapping[str, str]
    furnish: Callable[[Path], None] = lambda _: None


def _with_a_shell(root: Path) -> None:
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("/bin/busybox")


def _nats(root: Path) -> None:
    _with_a_shell(root)
    entrypoint = root / "usr/local/bin/docker-entrypoint.sh"
    entrypoint.write_text(NATS_ENTRYPOINT)
    entrypoint.chmod(0o755)


def _cluster(root: Path) -> None:
    _with_a_shell(root)
    folder = root / "cluster"
    folder.mkdir()
    (folder / "kubeconfig").write_text(CLUSTER_KUBECONFIG)
    # kubectl prompts for a name if a kubeconfig has no user.
    (folder / "tokens.csv").write_text("stand-in,admin,admin,system:masters\n")
    shutil.copy(STAGES, folder / "stages.yaml")
    private, public = signing_key(folder)
    private.rename(folder / "sa.key")
    public.rename(folder / "sa.pub")
    for name, text in (("start-cluster", CLUSTER), ("kwokctl", KWOKCTL)):
        (root / "usr/local/bin" / name).write_text(text)
        (root / "usr/local/bin" / name).chmod(0o755)


def _local(*programs: str) -> dict[str, str]:
    return {program: f"usr/local/bin/{program}" for program in programs}


NATS_STAND_IN = StandIn(
    Image(NATS, ("docker-entrypoint.sh",), PATH, command=("nats-server", "--config", "/etc/nats/nats-server.conf")),
    {**_local("nats-server"), "busybox": "bin/busybox"},
    _nats,
)
ETCD_STAND_IN = StandIn(Image(ETCD, (), PATH, command=("/usr/local/bin/etcd",)), _local("etcd", "etcdctl"))
CLUSTER_STAND_IN = StandIn(
    Image(KWOK_CLUSTER, ("start-cluster",), PATH),
    {
        **_local("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl"),
        "busybox": "bin/busybox",
    },
    _cluster,
)


async def obtain(stand_in: StandIn, programs: Programs, root: Path | None = None) -> Path:
    """The image's archive in the format of `docker save`; built if it is not in the cache."""
    paths = {where: await programs.obtain(name) for name, where in stand_in.programs.items()}
    digest = _recipe(paths)
    folder = (root if root is not None else default_cache_root()) / "images"
    name = stand_in.image.name.rpartition("/")[2].partition(":")[0]
    target = folder / f"stand-in-{name}-{digest}.tar"
    async with file_lock(folder / f".{name}.lock"):
        if not target.exists():
            _write(stand_in, paths, target)
    return target


def _recipe(paths: Mapping[str, Path]) -> str:
    parts = [Path(__file__).read_bytes(), Path(archive.__file__).read_bytes(), str(sorted(paths.items())).encode()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def _write(stand_in: StandIn, paths: Mapping[str, Path], target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".stand-in-", dir=target.parent) as staging:
        root = Path(staging, "root")
        for where, program in paths.items():
            place = root / where
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(program, place)
            place.chmod(0o755)
        stand_in.furnish(root)
        archive.write(stand_in.image, root, Path(staging, "image.tar"))
        Path(staging, "image.tar").replace(target)
