"""The images of the node: the pause program, and Debian's Python with the real Dynamo runtime and a tiny model.

Built once into the cache. The name contains a hash of what decides the content: the locked requirements, the model's
generator, and this recipe. Packages of Debian are the latest; their list is kept next to the image.
"""

import asyncio
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynamo_devcluster import LocalClusterError, Programs, Progress
from dynamo_devcluster.cache import default_cache_root
from dynamo_devcluster.locks import file_lock
from dynamo_devcluster.progress import step

from tests.dynamo_runtime import make_tiny_model
from tests.dynamo_runtime.environment import REQUIREMENTS
from tools.images import archive
from tools.images.archive import Image
from tools.images.commands import ImageError, run

from .configuration import PAUSE_IMAGE

SUITE = "bookworm"
PYTHON_VERSION = "3.11"
"""The suite's Python."""

PACKAGES_FOLDER = "/opt/dynamo"
#: The requirements of the stand-in engine next to the runtime: `make lock-dynamo-runtime` writes it.
ENGINE_REQUIREMENTS = REQUIREMENTS.with_name("played-engine.txt")
MODEL_FOLDER = "/opt/model"
#: Files that pods do not need, a fifth of the tree.
NOT_NEEDED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/i18n")
BOOTSTRAPS_WITHIN = 900.0
INSTALLS_WITHIN = 600.0


@dataclass(frozen=True)
class Images:
    """Names and archives. `runtime` runs `python3 -m dynamo.frontend` and `dynamo.mocker`; its model is in MODEL_FOLDER."""

    runtime: str
    archives: Sequence[Path]


def runtime_image() -> Image:
    """The runtime's image; other content gets another name."""
    parts = [Path(__file__), Path(archive.__file__), Path(make_tiny_model.__file__), REQUIREMENTS, ENGINE_REQUIREMENTS]
    digest = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:12]
    return Image(
        f"dynamo.local/runtime:{digest}",
        environment={
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": PACKAGES_FOLDER,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "HF_HUB_OFFLINE": "1",
            "HOME": "/tmp",
        },
    )


async def obtain(programs: Programs, progress: Progress, root: Path | None = None) -> Images:
    """Archives of both images, built if they are not in the cache; several processes may call this at once.

    Raises LocalClusterError if a step fails.
    """
    folder = (root if root is not None else default_cache_root()) / "images"
    image = runtime_image()
    target = folder / f"runtime-{image.name.rpartition(':')[2]}.tar"
    pause = folder / f"pause-{PAUSE_IMAGE.rpartition(':')[2]}.tar"
    program = await programs.obtain("pause")
    folder.mkdir(parents=True, exist_ok=True)
    async with file_lock(folder / ".lock", lambda: progress.started("waiting for another process that builds images")):
        with tempfile.TemporaryDirectory(prefix=".building-", dir=folder) as staging:
            if not pause.exists():
                await asyncio.to_thread(_pause, program, Path(staging), pause)
            if not target.exists():
                try:
                    await asyncio.to_thread(_runtime, image, Path(staging), target, progress)
                except (ImageError, subprocess.TimeoutExpired) as error:
                    raise LocalClusterError(str(error)) from error
                for stale in folder.glob("runtime-*"):
                    if stale.stem != target.stem:
                        stale.unlink()
    return Images(image.name, (pause, target))


def _pause(program: Path, staging: Path, target: Path) -> None:
    root = staging / "pause"
    root.mkdir()
    shutil.copy(program, root / "pause")
    # User 65535 has no rights: the program needs none.
    archive.write(Image(PAUSE_IMAGE, ("/pause",), user="65535:65535"), root, staging / "pause.tar")
    (staging / "pause.tar").replace(target)


def _runtime(image: Image, staging: Path, target: Path, progress: Progress) -> None:
    root = staging / "root"
    with step(progress, f"unpacking Debian {SUITE} with its Python"):
        included = "--include=python3,ca-certificates"
        run(["debootstrap", "--variant=minbase", included, SUITE, str(root), *_mirror()], BOOTSTRAPS_WITHIN)
    listed = run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show"], 20)
    for each in NOT_NEEDED:
        shutil.rmtree(root / each, ignore_errors=True)
    with step(progress, "installing the Dynamo runtime into the image"):
        uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
        run(
            [
                *(uv, "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"),
                *("--python", sys.executable, "--python-version", PYTHON_VERSION),
                *("--target", f"{root}{PACKAGES_FOLDER}", "--requirement", str(REQUIREMENTS)),
                *("--requirement", str(ENGINE_REQUIREMENTS)),
            ],
            INSTALLS_WITHIN,
        )
        inside = ["chroot", str(root), "/usr/bin/env", f"PYTHONPATH={PACKAGES_FOLDER}", "python3"]
        # Pods then need not compile. Checked by hash, because files in the image have no times. Some packages contain
        # templates that are not Python: their errors are ignored.
        compiling = ["-m", "compileall", "-f", "-q", "-j0", "--invalidation-mode", "unchecked-hash"]
        command = [*inside, *compiling, PACKAGES_FOLDER, f"/usr/lib/python{PYTHON_VERSION}"]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=INSTALLS_WITHIN, check=False)
        script = Path(make_tiny_model.__file__)
        shutil.copy(script, root / "tmp" / script.name)
        run([*inside, f"/tmp/{script.name}", MODEL_FOLDER], 60)
    with step(progress, "writing the image"):
        archive.write(image, root, staging / "runtime.tar")
        target.with_suffix(".packages").write_text(listed)
        (staging / "runtime.tar").replace(target)


def _mirror() -> list[str]:
    """apt's mirror of this suite. Empty if apt is configured for another suite: then debootstrap uses its default."""
    shown = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)"], 20)
    results = [line.split() for line in shown.splitlines()]
    return [uri for uri, *rest in results if rest == [SUITE, "main"]][:1]
