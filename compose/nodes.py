"""Applies nodes.yaml to the simulated cluster, and waits up to five minutes for its API server."""

import asyncio
import sys
from pathlib import Path

import yaml
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import NAMESPACES, NODES
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError, Unavailable

RESOURCES = {each.kind: each for each in (NAMESPACES, NODES)}
WAIT, PAUSE = 300.0, 1.0


async def apply(items: list[KubeObject], kubeconfig: Path) -> None:
    """Apply each of them."""
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
    asyncio.run(apply(yaml.safe_load(Path(sys.argv[2]).read_text())["items"], Path(sys.argv[1])))
except (KubeError, TimeoutError) as error:
    sys.exit(f"nodes.yaml is not applied: {error}")
