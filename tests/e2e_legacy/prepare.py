"""Downloads everything while there is a network: a node's needs, BuildKit, a registry, images of builds' pods."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dynamo_devcluster import LocalClusterError, Programs, Progress
from dynamo_shared.runtime.settings.image_builder import ImageBuilder

from tests.builds import programs as builds
from tests.e2e import images
from tests.e2e import prepare as node
from tools.images import archive
from tools.images.archive import Image
from tools.images.base import _bootstrapped as bootstrapped
from tools.images.base import stand_in_name
from tools.images.commands import ImageError

#: The container that fetches the archive; Debian's Python stands in for the official image.
PYTHON = stand_in_name(ImageBuilder().fetch_image)
#: The container that asks buildkitd for the build.
BUILDCTL = Image(f"dynamo.local/buildctl:{builds.BUILDKIT}", environment={"PATH": "/bin"})
APPLETS = ("sh", "tee", "sed", "tail", "head", "cat", "echo")


@dataclass(frozen=True)
class Prepared:
    """Programs by name, and archives of the node's images."""

    programs: Mapping[str, Path]
    archives: tuple[Path, ...]


async def prepare(progress: Progress) -> None:
    """Obtain everything. Raises UnsuitableMachineError or LocalClusterError."""
    await node.prepare(progress)
    with tempfile.TemporaryDirectory(prefix="dynamo-buildctl-") as folder:
        await prepared(Programs(progress), Path(folder))


async def prepared(programs: Programs, folder: Path) -> Prepared:
    """Everything that is needed, obtained if missing; the image of buildctl is written to `folder`."""
    result = await builds.obtain(programs.progress)
    busybox = await programs.obtain("busybox")
    pause = (await images.obtain(programs, programs.progress)).archives[0]
    try:
        python = bootstrapped(PYTHON)
    except ImageError as error:
        raise LocalClusterError(str(error)) from error
    return Prepared({**result, "busybox": busybox}, (pause, python, _buildctl(result["buildctl"], busybox, folder)))


def _buildctl(buildctl: Path, busybox: Path, folder: Path) -> Path:
    root = folder / "buildctl"
    (root / "bin").mkdir(parents=True)
    for program, name in ((buildctl, "buildctl"), (busybox, "busybox")):
        shutil.copy(program, root / "bin" / name)
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    archive.write(BUILDCTL, root, folder / "buildctl.tar")
    return folder / "buildctl.tar"
