"""The base image: pulled, or bootstrapped from Debian if no registry is reachable.

The stand-in has the same distribution, the same minor version of Python and the same paths as the official image. It
also has the same name, but on the registry `localhost`, so that the two cannot be confused.
"""

import hashlib
import shutil
import tempfile
from pathlib import Path

from dynamo_devcluster.cache import default_cache_root

from . import archive
from .archive import Image
from .commands import ImageError, run, succeeds
from .engine import ContainerEngine, install

SUITE = "trixie"
PYTHON_VERSION = "3.13"
"""Python of the Debian suite."""

BOOTSTRAPS_WITHIN = 900.0
COMPILES_WITHIN = 300.0
#: Files without use in a container, or that differ each time: documentation, and data for undo and look-ups of a
#: package manager.
NOT_NEEDED = (
    *("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/i18n", "usr/share/lintian"),
    *("var/cache", "var/lib/apt", "var/lib/systemd", "etc/machine-id", "etc/hostname", "etc/resolv.conf"),
    *("etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/.pwd.lock", "etc/ld.so.cache~"),
    *("var/lib/dpkg/status-old", "var/lib/dpkg/available-old", "var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend"),
)


def stand_in_name(base: str) -> str:
    """`docker.io/library/python:3.13-slim@sha256:...` is `localhost/python:3.13-slim`."""
    return "localhost/" + base.partition("@")[0].rpartition("/")[2]


def obtain(engine: ContainerEngine, base: str, platform: str) -> str:
    """The name of the base image to build on. Raises ImageError if it can neither be pulled nor bootstrapped."""
    if engine.has(base):
        return base
    try:
        engine.pull(base, platform)
    except ImageError as error:
        name = stand_in_name(base)
        reason = str(error).splitlines()[-1][-160:]
        print(f"{base} cannot be pulled ({reason}); {name}, bootstrapped from Debian {SUITE}, stands in", flush=True)
        # A stand-in from an older recipe has the same name.
        if not (engine.has(name) and _archive_of(name).exists()):
            engine.load(_bootstrapped(name))
        return name
    return base


def debian_packages(name: str) -> str:
    """Lines of `dpkg-query --show` of a stand-in; empty for a pulled image, which has its own bill of materials."""
    listed = _archive_of(name).with_suffix(".packages")
    return listed.read_text() if name.startswith("localhost/") and listed.exists() else ""


def _archive_of(name: str) -> Path:
    recipe = hashlib.sha256(Path(__file__).read_bytes() + Path(archive.__file__).read_bytes()).hexdigest()[:12]
    return default_cache_root() / "images" / f"base-{name.rpartition(':')[2]}-{recipe}.tar"


def _bootstrapped(name: str) -> Path:
    """An archive with Debian's Python at the paths of the official image's; kept in the cache."""
    target = _archive_of(name)
    folder = target.parent
    if target.exists():
        return target
    if not succeeds(("debootstrap", "--version")):
        install("debootstrap", "debian-archive-keyring")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".base-", dir=folder) as staging:
        root = Path(staging, "root")
        included = "--include=ca-certificates,python3,python3-venv,tzdata"
        run(["debootstrap", "--variant=minbase", included, SUITE, str(root), *_mirror()], BOOTSTRAPS_WITHIN)
        packages = run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show"], 60)
        for program in ("python", "python3"):
            (root / "usr/local/bin" / program).symlink_to(f"/usr/bin/python{PYTHON_VERSION}")
        _compile(root)
        for each in NOT_NEEDED:
            path = root / each
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        image = Image(name, ("python3",), {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"})
        archive.write(image, root, Path(staging, "image.tar"))
        target.with_suffix(".packages").write_text(packages)
        Path(staging, "image.tar").replace(target)
    return target


def _compile(root: Path) -> None:
    # Debian's compiled files contain the sources' times, which are removed from images.
    for stale in root.glob("usr/**/__pycache__"):
        shutil.rmtree(stale)
    inside = ["chroot", str(root), "/usr/bin/env", "PYTHONHASHSEED=0", "python3", "-m", "compileall", "-q", "-j1"]
    run([*inside, "--invalidation-mode", "unchecked-hash", f"/usr/lib/python{PYTHON_VERSION}"], COMPILES_WITHIN)


def _mirror() -> list[str]:
    """The Debian mirror of apt on this machine; if empty, debootstrap's default applies."""
    if shutil.which("apt-get") is None:
        return []
    shown = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)"], 20)
    return [words[0] for line in shown.splitlines() if (words := line.split())[1:] == ["Debian"]][:1]
