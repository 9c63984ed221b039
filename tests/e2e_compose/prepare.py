"""Downloads everything while there is a network: podman, the platform's images, stand-ins for the servers'."""

import asyncio
import os
from pathlib import Path

from dynamo_devcluster import LocalClusterError, Programs, Progress

from tests.containers import stand_ins
from tests.e2e.machine import UnsuitableMachineError, installed_version
from tests.e2e_platform.prepare import BUILT, PLATFORM_IMAGES, make_image
from tools.images import engine
from tools.images.commands import ImageError
from tools.images.engine import native_platform

STAND_INS = (stand_ins.NATS_STAND_IN, stand_ins.ETCD_STAND_IN, stand_ins.CLUSTER_STAND_IN)
PACKAGES = ("podman", "runc", "netavark", "aardvark-dns", "iptables", "iproute2", "procps")


async def prepare(progress: Progress) -> None:
    """Obtain everything, and build the platform's images from the source as it is now.

    Raises UnsuitableMachineError or LocalClusterError.
    """
    await prepare_programs(progress)
    for parts in ("runtime", "planner"):
        await asyncio.to_thread(make_image, parts)


async def prepare_programs(progress: Progress) -> None:
    """Obtain everything except the platform's images. Raises UnsuitableMachineError or LocalClusterError."""
    if os.geteuid() != 0:
        raise UnsuitableMachineError("namespaces and podman's networks take root: run `sudo make e2e-compose`")
    missing = [name for name in PACKAGES if not installed_version(name)]
    try:
        if missing:
            progress.started(f"installing {', '.join(missing)}")
            await asyncio.to_thread(engine.install, *missing)
    except ImageError as error:
        raise LocalClusterError(str(error)) from error
    programs = Programs(progress)
    await programs.obtain("kubectl")
    for each in STAND_INS:
        await stand_ins.obtain(each, programs)


async def archives(programs: Programs) -> list[Path]:
    """Archives that `prepare` created, to load."""
    platform = native_platform().partition("/")[2]
    built = [BUILT / f"{name}-{platform}.oci.tar" for name in PLATFORM_IMAGES.values()]
    return [*built, *[await stand_ins.obtain(each, programs) for each in STAND_INS]]
