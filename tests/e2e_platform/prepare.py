"""Downloads everything while there is a network: a node's needs, Helm, images of the platform and its servers."""

import asyncio
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dynamo_devcluster import LocalClusterError, Programs, Progress

from tests.containers import stand_ins
from tests.e2e import images
from tests.e2e import prepare as node
from tools.images.engine import native_platform

BUILT = Path(".dynamo/images")
BUILDS_WITHIN = 1800.0
TAG = "development"
#: Names in the cluster -> archive names of `make image`.
PLATFORM_IMAGES = {f"docker.io/library/{name}:{TAG}": name for name in ("dynamo-platform", "dynamo-platform-planner")}


@dataclass(frozen=True)
class Prepared:
    """Archives with their names in the cluster (empty: their own), and the name of the runtime's image."""

    archives: dict[Path, str]
    runtime: str


async def prepare(progress: Progress) -> None:
    """Obtain everything, and build the platform's images from the current source."""
    await node.prepare(progress)
    programs = Programs(progress)
    await programs.obtain("helm")
    for parts in ("runtime", "planner"):
        await asyncio.to_thread(make_image, parts)
    for each in (stand_ins.NATS_STAND_IN, stand_ins.ETCD_STAND_IN):
        await stand_ins.obtain(each, programs)


async def prepared(programs: Programs) -> Prepared:
    """The results of `prepare`."""
    result = await images.obtain(programs, programs.progress)
    archives = dict.fromkeys(result.archives, "")
    for each in (stand_ins.NATS_STAND_IN, stand_ins.ETCD_STAND_IN):
        archives[await stand_ins.obtain(each, programs)] = ""
    for name, archive in PLATFORM_IMAGES.items():
        archives[BUILT / f"{archive}-{native_platform().partition('/')[2]}.oci.tar"] = name
    return Prepared(archives, result.runtime)


def make_image(parts: str) -> None:
    """Build one of the platform's images from the current source. Raises LocalClusterError."""
    done = subprocess.run(
        ["make", "--no-print-directory", "image", f"PARTS={parts}", f"ARGS=--tag {TAG}"],
        timeout=BUILDS_WITHIN, check=False,
    )  # fmt: skip
    if done.returncode:
        raise LocalClusterError(f"`make image PARTS={parts}` failed")
