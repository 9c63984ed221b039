"""The stages, on the node's machine; see __main__.py."""

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from dynamo_devcluster import Programs
from dynamo_devcluster.progress import LineProgress
from dynamo_shared.kube import KubeClient

from tests.e2e.configuration import NETWORKS
from tests.e2e.node import Node

from .cluster import Cluster
from .platform import Platform
from .prepare import prepared
from .stages import FIRST, STAGES

VOLUMES = 12


async def main(options: argparse.Namespace) -> int:
    """Start the node and run the stages; returns the exit code."""
    programs = Programs(LineProgress())
    result = await prepared(programs)
    async with AsyncExitStack() as stack:
        node = Node(result.archives, programs, volumes=VOLUMES, prepare=None, audit=True)
        # A node of a run with --keep also has the platform.
        installed = node.lent
        if not installed:
            await stack.enter_async_context(node)
        kube = await stack.enter_async_context(await KubeClient.open(kubeconfig=node.kubeconfig, field_manager="tests"))
        kubectl, helm = await programs.obtain("kubectl"), await programs.obtain("helm")
        cluster = Cluster(node.kubeconfig, kubectl, helm, node.layout.folder)
        platform = Platform(cluster, kube, node, result, options.charts, node.layout.audit)
        await run(platform, options.only, installed=installed)
        code = platform.held.end()
        if options.keep and not installed:
            print(f"kept: KUBECONFIG={node.kubeconfig}, DYNAMO_NODE_FOLDER={node.layout.folder}", flush=True)
            await asyncio.Event().wait()
        return code


async def run(platform: Platform, only: list[str], *, installed: bool) -> None:
    """Run the named stages, all without names, and the stages that each of them needs, unless they ran before."""
    names = {*(only or STAGES), *(() if installed else FIRST)}
    for name, stage in STAGES.items():
        if name in names:
            await stage(platform)
        if name == FIRST[0] and platform.held.failed:
            # The only sign of a failure here.
            return


def options() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e_platform", description=__doc__)
    parser.add_argument("--charts", type=Path, default=Path("helm"), help="the folder of the charts")
    parser.add_argument(
        "--only", action="append", choices=[*STAGES], default=[],
        help=f"a stage, once or more; {' and '.join(FIRST)} come before it unless a kept node has the platform",
    )  # fmt: skip
    parser.add_argument(
        "--keep", action="store_true", help="wait at the end, so that you can inspect the cluster; Ctrl-C ends it"
    )
    parser.add_argument(
        "--family", choices=[*NETWORKS], default="ipv4", help="all addresses of the cluster, the only ones that it has"
    )
    parser.add_argument("--built", action="store_true", help="use the images that the last run built")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(options())))
