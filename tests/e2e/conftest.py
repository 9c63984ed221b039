"""One node, the platform on it and one graph for the whole session; collected only inside a node's namespaces."""

import os
from collections.abc import AsyncIterator

import pytest
from dynamo_ctl.commands.demo.local import platform_on
from dynamo_devcluster import Programs
from dynamo_devcluster.progress import LineProgress
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACES, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime.settings import Settings

from tests.integration.platform import until_state

from . import graph, images
from .heard import Heard, listening
from .node import FOLDER_VARIABLE, Node
from .serving import Served

# `make e2e-runtime` runs these; elsewhere a node would change the machine.
collect_ignore_glob = [] if FOLDER_VARIABLE in os.environ else ["test_*.py"]

#: Seconds. Images are loaded already, so a pod starts as fast as its Python.
READY_WITHIN = 120.0
#: A node may be kept over several sessions.
NAMESPACE = f"e2e-{os.getpid()}"
GRAPH = ObjectKey(NAMESPACE, "mocked")


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The source of programs; `python -m tests.e2e` has downloaded them before it disconnected the network."""
    return Programs(LineProgress())


@pytest.fixture(scope="session")
async def runtime_image(programs: Programs) -> images.Images:
    """The images of the node."""
    return await images.obtain(programs, programs.progress)


@pytest.fixture(scope="session")
async def node(programs: Programs, runtime_image: images.Images) -> AsyncIterator[Node]:
    """A one-node cluster that runs pods: the one of `python -m tests.e2e.node`, or a new one."""
    one = Node(runtime_image.archives, programs)
    if one.lent:
        yield one
        return
    async with one:
        yield one


@pytest.fixture(scope="session")
async def kube(node: Node) -> AsyncIterator[KubeClient]:
    """A client with all rights."""
    async with await KubeClient.open(kubeconfig=node.kubeconfig, field_manager="dynamo-tests") as client:
        yield client


@pytest.fixture(scope="session")
async def platform(node: Node, programs: Programs) -> AsyncIterator[Settings]:
    """Every service of the platform, as `dynamoctl run all` runs them, with webhooks."""
    async with platform_on(
        node.kubeconfig, node.layout.folder / "platform" / NAMESPACE, NAMESPACE, programs
    ) as settings:
        yield settings


@pytest.fixture(scope="session")
async def deployed(
    kube: KubeClient, node: Node, heard: Heard, runtime_image: images.Images
) -> AsyncIterator[ObjectKey]:
    """The graph, created through the webhooks; not necessarily ready."""
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph.disaggregated(NAMESPACE, runtime_image.runtime, GRAPH.name))
    yield GRAPH
    if node.lent:
        await kube.delete(NAMESPACES, ObjectKey("", NAMESPACE))


@pytest.fixture(scope="session")
async def heard(platform: Settings) -> AsyncIterator[Heard]:
    """Events about the graph's namespace, from before the graph's creation."""
    async with listening(platform, NAMESPACE) as events:
        yield events


@pytest.fixture(scope="session")
async def served(kube: KubeClient, node: Node) -> Served:
    """The graph as users see it."""
    return Served(kube, GRAPH, node)


@pytest.fixture
async def successful(kube: KubeClient, deployed: ObjectKey) -> ObjectKey:
    """The graph, ready again after the previous test."""
    await until_state(kube, deployed, "successful", READY_WITHIN)
    return deployed
