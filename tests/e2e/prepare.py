"""Downloads everything while there is a network: packages of Debian, programs, images. All of it is cached."""

import asyncio
import time

from dynamo_devcluster import ControlPlaneOptions, Programs, Progress
from dynamo_devcluster.catalog import NODE_PROGRAMS

from . import images, machine


async def prepare(progress: Progress) -> None:
    """Prepare this machine for a node. Raises UnsuitableMachineError or LocalClusterError."""
    machine.check()
    step = "looking for Debian packages"
    progress.started(step)
    begun = time.monotonic()
    installed = await asyncio.to_thread(machine.install_packages)
    done = f"{step}, installing {', '.join(installed)}" if installed else step
    progress.finished(done, time.monotonic() - begun)
    programs = Programs(progress)
    await programs.obtain_all([*ControlPlaneOptions(kwok_nodes=0).programs, "nats-server", "kubectl", *NODE_PROGRAMS])
    await images.obtain(programs, progress)
