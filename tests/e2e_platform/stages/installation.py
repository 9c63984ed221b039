"""From an empty cluster to the first chat completion."""

import time

from tests.e2e_platform import objects, pods
from tests.e2e_platform.objects import NAMESPACE
from tests.e2e_platform.platform import EXPECTED, GRAPHS, MOCKED, Platform


async def install(platform: Platform) -> None:
    """Install both charts, into a namespace that enforces `restricted`."""
    cluster, held = platform.cluster, platform.held
    await cluster.apply(objects.namespace(NAMESPACE, restricted=True), objects.namespace(GRAPHS))
    with held.check("helm install of both charts, into a namespace that enforces `restricted`") as details:
        platform.began = time.monotonic()
        await platform.install_definitions()
        installed = time.monotonic()
        details.append(f"definitions {installed - platform.began:.1f} s")
        await platform.helm("install")
        details.append(f"platform {time.monotonic() - installed:.1f} s")
    with held.check("two replicas of each service and three of NATS and etcd are ready"):
        ready = await pods.all_ready(cluster, NAMESPACE, EXPECTED)
        assert not pods.restarts(ready), "containers ended on the way"


async def serve(platform: Platform) -> None:
    """A graph of the real frontend and mocker answers."""
    with platform.held.check("a graph of the real frontend and mocker answers a chat completion") as details:
        created = time.monotonic()
        await platform.cluster.apply(objects.served_graph(GRAPHS, platform.prepared.runtime, MOCKED))
        await platform.successful(GRAPHS, MOCKED)
        ready = time.monotonic()
        await platform.chat()
        now = time.monotonic()
        details.append(f"graph successful {ready - created:.1f} s")
        details.append(f"chat {now - ready:.1f} s")
        details.append(f"helm install to the first chat completion {now - platform.began:.1f} s")
