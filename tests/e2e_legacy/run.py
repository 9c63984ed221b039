"""The checks of `make e2e-legacy`, on the node's machine; see __main__.py.

Next to the cluster run an archive store, a registry that requires a login, and a buildkitd. The platform runs all
services, as `dynamoctl run all` does, and knows these servers from the variables that seed 003 lists.
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from dynamo_ctl.commands.demo.local import platform_on
from dynamo_devcluster import Programs
from dynamo_devcluster.progress import LineProgress
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import NAMESPACES, SECRETS
from dynamo_shared.kube import KubeClient

from tests.builds import parts
from tests.e2e.configuration import NETWORK
from tests.e2e.heard import listening
from tests.e2e.node import Node
from tests.held import Held
from tests.integration.archive_store import archive_store

from .checks import NAMESPACE, World, run
from .prepare import BUILDCTL, PYTHON, prepared

BUILDS = "builds"


def variables(store: str, registry: str, buildkitd: str) -> dict[str, str]:
    """The platform's settings: variables of earlier operators where they exist."""
    return {
        "YATAI_ENDPOINT": store,
        "YATAI_IMAGE_BUILDER_NAMESPACE": BUILDS,
        "BUILDKIT_URL": buildkitd,
        "INTERNAL_IMAGES_BUILDKIT": BUILDCTL.name,
        "DOCKER_REGISTRY_SERVER": f"{registry}/team",
        "DOCKER_REGISTRY_SECURE": "false",
        "DOCKER_REGISTRY_USERNAME": parts.USER,
        "DYNAMO_PLATFORM__IMAGE_BUILDER__REGISTRY__SECRET": "push",
        "DYNAMO_PLATFORM__IMAGE_BUILDER__FETCH_IMAGE": PYTHON,
        "DYNAMO_PLATFORM__IMAGE_BUILDER__RESOURCES__REQUESTS": '{"cpu": "100m"}',
        "DYNAMO_PLATFORM__IMAGE_BUILDER__RESOURCES__LIMITS": '{"memory": "512Mi"}',
    }


async def create_prerequisites(kube: KubeClient, registry: str) -> None:
    """Create namespaces, and the credentials for builds to push and for nodes to pull."""
    for name, labels in ((NAMESPACE, {}), (BUILDS, {"pod-security.kubernetes.io/enforce": "restricted"})):
        await kube.create(
            NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        )
    login = {"auths": {registry: {"username": parts.USER, "password": parts.PASSWORD}}}
    push = {"stringData": {"password": parts.PASSWORD}}
    pull = {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": json.dumps(login)}}
    for name, namespace, content in (("push", BUILDS, push), ("pull", NAMESPACE, pull)):
        metadata: KubeObject = {"name": name, "namespace": namespace}
        await kube.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **content})


async def main() -> int:
    """Start everything and run the checks; returns the exit code."""
    programs = Programs(LineProgress())
    held = Held("legacy")
    async with AsyncExitStack() as stack:
        folder = Path(os.environ["DYNAMO_NODE_FOLDER"])
        result = await prepared(programs, folder)
        node = await stack.enter_async_context(Node(result.archives, programs))
        kube = await stack.enter_async_context(await KubeClient.open(kubeconfig=node.kubeconfig, field_manager="tests"))
        store = stack.enter_context(archive_store(NETWORK.node))
        # The node's runtime allows plain HTTP only on loopback.
        registry = await stack.enter_async_context(parts.registry(result.programs["registry"], folder / "registry"))
        buildkitd = await stack.enter_async_context(
            parts.buildkitd(result.programs["buildkitd"], folder / "buildkitd", NETWORK.node)
        )
        await create_prerequisites(kube, registry.host)
        os.environ |= variables(store.url, registry.host, buildkitd)
        settings = await stack.enter_async_context(
            platform_on(node.kubeconfig, folder / "platform" / NAMESPACE, NAMESPACE, programs)
        )
        heard = await stack.enter_async_context(listening(settings, NAMESPACE))
        shell = await asyncio.to_thread(result.programs["busybox"].read_bytes)
        await run(held, World(node, kube, store, registry, heard, shell, BUILDS))
    return held.end()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
