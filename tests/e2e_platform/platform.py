"""The installed platform for the stages: Helm on its release, its graphs, and checks that it works."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient

from tests.e2e.node import Node
from tests.e2e.serving import Served
from tests.held import Held

from . import objects
from .cluster import Cluster, eventually
from .objects import CRDS, NAMESPACE, RELEASE, SERVICES
from .prepare import Prepared

GRAPHS = "prod"
#: The graph that answers chat completions.
MOCKED = "mocked"
#: The graph that proves that changes are reconciled.
CHANGED = "changed"
NODE = "dynamo-node"
EXPECTED = {**dict.fromkeys(SERVICES, 2), "nats": 3, "etcd": 3}
#: What the chart's defaults omit.
SWITCHED_ON = ("--set", "dynadmin.enabled=true")
INSTALLS_WITHIN = 300.0
SERVES_WITHIN = 240.0
#: Limit for a change of a graph to be reconciled, even while a replica is replaced. Seconds.
CHANGES_WITHIN = 60.0


@dataclass
class Platform:
    """One installation. `charts` is a folder with both charts; `audit` has the API server's audit logs."""

    cluster: Cluster
    kube: KubeClient
    node: Node
    prepared: Prepared
    charts: Path
    audit: Path
    held: Held = field(default_factory=lambda: Held("platform"))
    began: float = field(default_factory=time.monotonic)

    async def install_definitions(self) -> None:
        """Install the first chart."""
        await self.cluster.helm("install", CRDS, str(self.charts / "dynamo-crds"), "--namespace", NAMESPACE)

    async def helm(self, verb: str, released: Path | None = None) -> None:
        """Install or upgrade the release, to the previously released version or to this one, and wait for it."""
        chart, more = (released, ()) if released else (self.charts / "dynamo-platform", SWITCHED_ON)
        values = self.cluster.values(
            "values", objects.platform_values(self.prepared.runtime, released=released is not None)
        )
        await self.cluster.helm(
            *(verb, RELEASE, str(chart), "--namespace", NAMESPACE),
            *("--values", values, "--wait", "--wait-for-jobs", f"--timeout={INSTALLS_WITHIN:.0f}s", *more),
            within=INSTALLS_WITHIN + 30,
        )

    async def graph_pods(self) -> list[KubeObject]:
        """Pods of the served graph."""
        selector = f"--selector=nvidia.com/dynamo-graph-deployment-name={MOCKED}"
        result = await self.cluster.items("pods", "--namespace", GRAPHS, selector)
        return [pod for pod in result if "deletionTimestamp" not in pod["metadata"]]

    async def successful(self, namespace: str, name: str) -> None:
        """Wait until a graph is successful in its current generation."""

        async def check() -> bool:
            graph = await self.cluster.get("dgd", name, "--namespace", namespace)
            status = graph.get("status", {})
            assert status.get("state") == "successful", status.get("conditions")
            return bool(status.get("observedGeneration") == graph["metadata"]["generation"])

        await eventually(check, f"{namespace}/{name} is successful", SERVES_WITHIN)

    async def chat(self) -> None:
        """Chat through the frontend's Service, which is ready before it has read the workers' model cards."""
        served = Served(self.kube, ObjectKey(GRAPHS, MOCKED), self.node)

        async def check() -> bool:
            status, body = await served.chat("Hello", 8)
            assert status == 200, body
            return bool(body["usage"]["completion_tokens"] == 8)

        await eventually(check, "a chat completion", 60)

    async def carries_out_changes(self) -> None:
        """Create, change and delete a graph; each time its Deployment must follow."""
        await self._has_replicas(1)
        await self._has_replicas(2)
        await self.cluster.kubectl("delete", "dgd", CHANGED, "--namespace", GRAPHS, "--timeout=60s", within=70)

    async def _has_replicas(self, replicas: int) -> None:
        selector = f"--selector=nvidia.com/dynamo-graph-deployment-name={CHANGED}"

        async def check() -> bool:
            result = await self.cluster.items("deployments", "--namespace", GRAPHS, selector)
            return [each["spec"]["replicas"] for each in result] == [replicas]

        async def applied() -> bool:
            await self.cluster.apply(objects.paused_graph(GRAPHS, CHANGED, replicas))
            return True

        # Right after a replica was killed, a webhook call may fail once.
        await eventually(applied, f"{CHANGED} is applied", CHANGES_WITHIN)
        await eventually(check, f"{CHANGED} has {replicas} replicas", CHANGES_WITHIN)
