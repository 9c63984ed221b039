"""Images without a registry or a container engine: an archive in the format of `docker save`, with one layer."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
#: Devices, and files that a package manager leaves; paths relative to the root of the image.
LEFT_OUT = ("dev", "proc", "sys", "run", "tmp", "var/cache/apt", "var/lib/apt/lists", "var/log")
#: Directories that a runtime mounts or programs expect.
RECREATED = {"dev": 0o755, "proc": 0o755, "sys": 0o755, "run": 0o755, "tmp": 0o1777, "var/log": 0o755}


@dataclass(frozen=True)
class Image:
    """The name of an image, and how it starts."""

    name: str
    entrypoint: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    command: Sequence[str] = ()


def write(image: Image, root: Path, archive: Path) -> None:
    """Write the archive of an image with the files below `root`; the owner is root, and times are 0."""
    layer = archive.with_name(archive.name + ".layer")
    try:
        _layer(root, layer)
        digest = _sha256(layer)
        config = {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": {
                "Entrypoint": list(image.entrypoint),
                "Cmd": list(image.command),
                "Env": [f"{name}={value}" for name, value in image.environment.items()],
                "User": image.user,
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created_by": "tools.images"}],
        }
        encoded = json.dumps(config).encode()
        named = f"{hashlib.sha256(encoded).hexdigest()}.json"
        manifest = [{"Config": named, "RepoTags": [image.name], "Layers": [f"{digest}/layer.tar"]}]
        with tarfile.open(archive, "w") as tar:
            _text(tar, named, encoded)
            _text(tar, "manifest.json", json.dumps(manifest).encode())
            tar.add(layer, f"{digest}/layer.tar", filter=_plain)
    finally:
        layer.unlink(missing_ok=True)


def _layer(root: Path, layer: Path) -> None:
    def kept(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if info.name in LEFT_OUT or info.ischr() or info.isblk():
            return None
        return _plain(info)

    with tarfile.open(layer, "w") as tar:
        for each in sorted(root.iterdir()):
            tar.add(each, each.name, filter=kept)
        for name, mode in RECREATED.items():
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            tar.addfile(folder)


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = 0
    return info


def _text(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = _plain(tarfile.TarInfo(name))
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
