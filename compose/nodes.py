"""Applies nodes.yaml to the simulated cluster, and waits up to five minutes for its API server."""

import asyncio
import sys
from pathlib import Path

import yaml
from dynamo_shared.api.resources import NAMESPACES, NODES
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError, Unavailable

RESOURCES = {each.kind: each for each in (NAMESPACES, NODES)}
WAIT, PAUSE = 300.0, 1.0


async def main(kubeconfig: Path, manifests: Path) -> None:
    """Apply every item of a List."""
    items = yaml.safe_load(manifests.read_text())["items"]
    async with await KubeClient.open(kubeconfig=kubeconfig, field_manager="compose") as client, asyncio.timeout(WAIT):
        while items:
            try:
                await client.apply(RESOURCES[items[0]["kind"]], items[0])
            except Unavailable as error:
                print(error, file=sys.stderr)
                await asyncio.sleep(PAUSE)
            else:
                del items[0]


try:
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
except (KubeError, TimeoutError) as error:
    sys.exit(f"nodes.yaml is not applied: {error}")
