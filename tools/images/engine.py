"""The program that builds images: Debian's buildah, or the user's podman or docker.

The three accept nearly the same arguments. buildah comes first: it needs no daemon, no cgroups and no namespaces
(`--isolation chroot`), so it also works within a container.
"""

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .commands import ImageError, run, succeeds

PLATFORMS = {"x86_64": "linux/amd64", "aarch64": "linux/arm64", "arm64": "linux/arm64"}
BUILDS_WITHIN = 1800.0
INSTALLS_WITHIN = 600.0
PULLS_WITHIN = 600.0


@dataclass(frozen=True)
class ImageBuild:
    """One image: its name, its platform, and the Dockerfile's arguments."""

    name: str
    platform: str
    epoch: int
    arguments: Mapping[str, str]
    secrets: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class ContainerEngine:
    """buildah, podman or docker, by the name of its program."""

    program: str

    def has(self, image: str) -> bool:
        """Whether the image is in the local storage."""
        return succeeds([self.program, *(() if self._buildah else ("image",)), "inspect", *self._only_images, image])

    def pull(self, image: str, platform_: str) -> None:
        """Pull an image. Raises ImageError if the registry does not answer or has no such image."""
        run([self.program, "pull", "--quiet", "--platform", platform_, image], PULLS_WITHIN)

    def load(self, archive: Path) -> None:
        """Load an archive of `docker save` into the local storage."""
        if self._buildah:
            run(["buildah", "pull", "--quiet", f"docker-archive:{archive}"], PULLS_WITHIN)
        else:
            run([self.program, "load", "--quiet", "--input", str(archive)], PULLS_WITHIN)

    def build(self, build: ImageBuild, context: Path) -> None:
        """Build the image into the local storage."""
        command = [self.program, "build", "--tag", build.name, "--platform", build.platform]
        if self.program != "docker":
            # All files and the image have this time, and the image has one layer on top of the base.
            command += ["--isolation", "chroot", "--format", "oci", "--timestamp", str(build.epoch), "--layers=false"]
            command += ["--identity-label=false", "--pull=false"]
        for name, value in build.arguments.items():
            command += ["--build-arg", f"{name}={value}"]
        for name, path in build.secrets.items():
            command += ["--secret", f"id={name},src={path}"]
        run([*command, str(context)], BUILDS_WITHIN)

    def export(self, image: str, archive: Path) -> None:
        """Export the image as an OCI archive."""
        archive.unlink(missing_ok=True)
        if self._buildah:
            run(
                ["buildah", "push", "--quiet", "--format", "oci", image, f"oci-archive:{archive}:{image}"],
                BUILDS_WITHIN,
            )
        elif self.program == "podman":
            run(
                ["podman", "save", "--quiet", "--format", "oci-archive", "--output", str(archive), image], BUILDS_WITHIN
            )
        else:
            run(["docker", "save", "--output", str(archive), image], BUILDS_WITHIN)

    @property
    def _buildah(self) -> bool:
        return self.program == "buildah"

    @property
    def _only_images(self) -> Sequence[str]:
        return ("--type", "image") if self._buildah else ()


def find() -> ContainerEngine:
    """The first engine that works on this machine; installs buildah if possible. Raises ImageError."""
    named = os.environ.get("ENGINE", "")
    if named:
        if named not in _CHECKS or not succeeds(_CHECKS[named]):
            raise ImageError(f"ENGINE={named} does not answer; allowed: {', '.join(_CHECKS)}")
        return ContainerEngine(named)
    for program, check in _CHECKS.items():
        if succeeds(check):
            return ContainerEngine(program)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("no container engine is installed: installing Debian's buildah", flush=True)
        install("buildah")
        return ContainerEngine("buildah")
    raise ImageError("no container engine answers: install buildah, podman or docker, or run this as root on Debian")


def install(*packages: str) -> None:
    """Install Debian packages as root. Raises ImageError."""
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=60"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run([*apt, "update"], INSTALLS_WITHIN, environment)
    run([*apt, "install", "--yes", "--no-install-recommends", *packages], INSTALLS_WITHIN, environment)


def native_platform() -> str:
    """The platform of this machine, in the notation of images. Raises ImageError."""
    machine = platform.machine()
    if machine not in PLATFORMS:
        raise ImageError(
            f"images are built for {', '.join(sorted(set(PLATFORMS.values())))}, but this machine is {machine}"
        )
    return PLATFORMS[machine]


_CHECKS = {"buildah": ("buildah", "images"), "podman": ("podman", "info"), "docker": ("docker", "info")}
