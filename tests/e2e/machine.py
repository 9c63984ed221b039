"""Requirements for this machine: Linux, root, Debian's packages. Installs missing ones."""

import os
import shutil
import subprocess
from dataclasses import dataclass

from tools.images import engine
from tools.images.commands import ImageError


class UnsuitableMachineError(Exception):
    """No real node can run here; the message says why, and what to do."""


@dataclass(frozen=True)
class Package:
    """A Debian package: versions from `at_least` on, and `below` excluded if set."""

    name: str
    at_least: str
    below: str = ""


#: Debian 12 has containerd 1.6, runc 1.1, plugins 1.1 and iptables 1.8.9.
PACKAGES = (
    # 2.0 has other configuration keys, and kubelet 1.35 is the last that supports 1.x.
    Package("containerd", "1.6", "2.0"),
    Package("runc", "1.1"),
    # `ptp` and `host-local`, CNI version 0.4.0, are in /usr/lib/cni.
    Package("containernetworking-plugins", "1.1"),
    Package("debootstrap", "1.0.100"),
    # A separate package on Ubuntu.
    Package("debian-archive-keyring", "2021"),
    Package("iptables", "1.8"),
    Package("conntrack", "1.4"),
    # kube-router stores the addresses of network policies in sets.
    Package("ipset", "7.0"),
    Package("iproute2", "5.10"),
    Package("procps", "3.3"),
    # unshare --kill-child --mount-proc
    Package("util-linux", "2.32"),
)
OTHERWISE = (
    "install containerd 1.6 or 1.7, runc, the CNI plugins in /usr/lib/cni, debootstrap, iptables, ipset, conntrack and iproute2 "
    "yourself, or run this on Debian 12"
)


def check() -> None:
    """Raises UnsuitableMachineError if no node can run here."""
    if os.uname().sysname != "Linux":
        raise UnsuitableMachineError(
            f"a kubelet runs on Linux, and this is {os.uname().sysname}: use a Linux machine or VM"
        )
    if os.geteuid() != 0:
        raise UnsuitableMachineError(
            "a kubelet and containerd run as root, in namespaces of their own: run `sudo make e2e-runtime`"
        )


def install_packages() -> list[str]:
    """Install missing packages with apt-get; returns their names.

    Raises UnsuitableMachineError without apt-get, or if the available versions are too old or too new.
    """
    if shutil.which("apt-get") is None:
        raise UnsuitableMachineError(f"there is no apt-get to install packages with: {OTHERWISE}")
    missing = [package.name for package in PACKAGES if not suitable(package, installed_version(package.name))]
    if missing:
        try:
            engine.install(*missing)
        except ImageError as error:
            raise UnsuitableMachineError(f"{error}\n{OTHERWISE}") from error
    for package in PACKAGES:
        version = installed_version(package.name)
        if not suitable(package, version):
            desired = f">= {package.at_least}" + (f", < {package.below}" if package.below else "")
            raise UnsuitableMachineError(
                f"{package.name} {version or '(none)'} is installed, {desired} is needed, and apt-get has no other: {OTHERWISE}"
            )
    return missing


def installed_version(package: str) -> str:
    """The version that dpkg has installed, or ""."""
    shown = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}", package],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    status, _, version = shown.stdout.partition(" ")
    return version if status == "installed" else ""


def suitable(package: Package, version: str) -> bool:
    """Whether this version of a package is accepted."""
    return (
        bool(version)
        and _is(version, "ge", package.at_least)
        and (not package.below or _is(version, "lt", package.below))
    )


def _is(version: str, relation: str, other: str) -> bool:
    # The epoch ("1:1.4.7") is Debian's and not part of the program's version.
    plain = version.partition(":")[2] or version
    return (
        subprocess.run(["dpkg", "--compare-versions", plain, relation, other], timeout=20, check=False).returncode == 0
    )
