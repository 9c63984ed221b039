"""The checks, in the order in which a platform team meets them. Runs on the node's machine, see __main__.py."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from contextlib import AsyncExitStack, suppress
from typing import Any

from dynamo_ctl.localcluster import Programs
from dynamo_ctl.localcluster.progress import LineProgress
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient

from tests.e2e.node import Node
from tests.e2e.serving import Served
from tests.held import Held

from . import objects, pods
from .cluster import Cluster, CommandError, eventually
from .objects import CRDS, NAMESPACE, RELEASE, SERVICES
from .prepare import Prepared, prepared

GRAPHS = "prod"
TEAM, TEAM_RELEASE = "team-a", "team-platform"
INSTALLS_WITHIN = 600.0
SERVES_WITHIN = 240.0
EXPECTED = {**dict.fromkeys(SERVICES, 2), "nats": 3, "etcd": 3}
VOLUMES = 12


class Run:
    """One installation, from nothing."""

    def __init__(self, cluster: Cluster, kube: KubeClient, node: Node, found: Prepared, charts: str) -> None:
        self.charts = charts
        self.cluster = cluster
        self.kube = kube
        self.node = node
        self.found = found
        self.held = Held("platform")
        self.values = cluster.values("values", objects.platform_values(found.runtime))
        self.served = Served(kube, ObjectKey(GRAPHS, "mocked"), node)
        self.began = time.monotonic()

    async def helm(self, verb: str, *more: str) -> str:
        """Install or upgrade the platform, and wait for it."""
        command = (verb, RELEASE, f"{self.charts}/dynamo-platform", "--namespace", NAMESPACE, "--values", self.values)
        waiting = ("--wait", "--wait-for-jobs", f"--timeout={INSTALLS_WITHIN:.0f}s")
        return await self.cluster.helm(*command, *waiting, *more, within=INSTALLS_WITHIN + 30)

    async def all(self) -> int:
        """Every check; returns the exit code."""
        await self.install()
        if self.held.failed:
            # Nothing else says more.
            return self.held.end()
        await self.serve()
        await self.confined()
        await self.kill()
        await self.drain()
        await self.upgrade()
        await self.beside()
        await self.remove()
        return self.held.end()

    async def install(self) -> None:
        await self.cluster.apply(objects.namespace(NAMESPACE, restricted=True), objects.namespace(GRAPHS))
        with self.held.check("helm install of both charts, into a namespace that enforces `restricted`") as notes:
            self.began = time.monotonic()
            await self.cluster.helm("install", CRDS, f"{self.charts}/dynamo-crds", "--namespace", NAMESPACE)
            notes.append(f"definitions {time.monotonic() - self.began:.1f} s")
            await self.helm("install")
        with self.held.check("two replicas of each service and three of NATS and etcd are ready"):
            await pods.all_ready(self.cluster, NAMESPACE, EXPECTED)

    async def confined(self) -> None:
        with self.held.check("helm test: a graph answers a chat completion"):
            said = await self.cluster.helm("test", RELEASE, "--namespace", NAMESPACE, "--timeout=600s", within=630)
            assert "Succeeded" in said, "the chart has no test"
        with self.held.check("Pod Security refuses a pod that is not restricted"):
            command = ("run", "root", "--namespace", NAMESPACE, f"--image={self.found.runtime}", "--privileged")
            assert "violates PodSecurity" in await self.cluster.refusal(*command)
        with self.held.check(
            "NetworkPolicies (kube-router): NATS and etcd are closed to other pods, the API server is not"
        ):
            await self._probe_ports()

    async def _probe_ports(self) -> None:
        probe = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "stranger", "namespace": GRAPHS},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": self.found.runtime,
                        "imagePullPolicy": "Never",
                        "command": ["sleep", "3600"],
                    }
                ]
            },
        }
        await self.cluster.apply(probe)
        await self.cluster.kubectl(
            "wait", "--namespace", GRAPHS, "--for=condition=Ready", "pod/stranger", "--timeout=50s"
        )

        async def reaches(host: str, port: int) -> bool:
            code = f"import socket; socket.create_connection(({host!r}, {port}), 3).close(); print('open')"
            try:
                return "open" in await self.cluster.kubectl(
                    "exec", "--namespace", GRAPHS, "stranger", "--", "python3", "-c", code
                )
            except CommandError:
                return False

        services = await self.cluster.items("services", "--namespace", NAMESPACE, pods.selector(RELEASE))
        addresses = {each["metadata"]["name"]: each["spec"]["clusterIP"] for each in services}
        assert await reaches("kubernetes.default.svc", 443), "the API server is not reached either"
        for part, port in (("nats", 4222), ("etcd", 2379)):
            assert not await reaches(addresses[f"{RELEASE}-{part}"], port), f"a pod of another namespace reaches {part}"
        await self.cluster.kubectl("delete", "pod", "stranger", "--namespace", GRAPHS, "--wait=false")

    async def serve(self) -> None:
        with self.held.check("a graph of the real frontend and mocker answers a chat completion") as notes:
            created = time.monotonic()
            await self.cluster.apply(objects.served_graph(GRAPHS, self.found.runtime, "mocked"))
            await self.successful(GRAPHS, "mocked")
            ready = time.monotonic()
            await self.chat()
            now = time.monotonic()
            notes.append(f"graph successful {ready - created:.1f} s")
            notes.append(f"chat {now - ready:.1f} s")
            notes.append(f"helm install to the first chat completion {now - self.began:.1f} s")

    async def kill(self) -> None:
        present = await pods.of_release(self.cluster, NAMESPACE)
        workers = pods.uids(await self.graph_pods())
        rounds: dict[str, list[str]] = {}
        for pod in present:
            rounds.setdefault(pod["metadata"]["labels"][pods.COMPONENT], []).append(pod["metadata"]["name"])
        with self.held.check(f"each of {len(present)} pods of the platform is killed, one of each kind at a time"):
            for number in range(max(map(len, rounds.values()))):
                names = [names[number] for names in rounds.values() if number < len(names)]
                await self.cluster.kubectl(
                    "delete", "pod", *names, "--namespace", NAMESPACE, "--grace-period=0", "--force"
                )
                await pods.all_ready(self.cluster, NAMESPACE, EXPECTED)
        with self.held.check("the graph's pods are the same, it answers, and a change of it is carried out"):
            assert pods.uids(await self.graph_pods()) == workers
            await self.chat()
            await self.scale_and_back()

    async def drain(self) -> None:
        with self.held.check("a drain of the node leaves one replica of each service, and changes are carried out"):
            with suppress(CommandError):
                await self.cluster.kubectl(
                    *("drain", self.node_name, "--ignore-daemonsets", "--delete-emptydir-data", "--force"),
                    *(f"--pod-selector=app.kubernetes.io/instance={RELEASE}", "--timeout=25s"),
                    within=60,
                )
            left = await pods.of_release(self.cluster, NAMESPACE)
            running = {pod["metadata"]["labels"][pods.COMPONENT] for pod in left if pod["spec"].get("nodeName")}
            assert running == set(EXPECTED), running
            await self.scale_and_back()
        await self.cluster.kubectl("uncordon", self.node_name)
        with self.held.check("after the drain everything is back"):
            await pods.all_ready(self.cluster, NAMESPACE, EXPECTED)

    async def upgrade(self) -> None:
        workers = pods.uids(await self.graph_pods())
        for verb, more in (("upgrade", ("--set", "defaults.podAnnotations.upgraded=yes")), ("rollback", ())):
            with self.held.check(
                f"helm {verb} while graphs change: the last change of each holds, no workload restarts"
            ):
                changing = asyncio.create_task(self._change(verb))
                try:
                    if verb == "upgrade":
                        await self.helm(verb, *more)
                    else:
                        await self.cluster.helm(
                            "rollback", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout=600s", within=630
                        )
                finally:
                    changing.cancel()
                    with suppress(asyncio.CancelledError):
                        await changing
                await pods.all_ready(self.cluster, NAMESPACE, EXPECTED)
                await self._settled(verb)
                assert pods.uids(await self.graph_pods()) == workers, "pods of the served graph were replaced"
                await self.chat()

    async def _change(self, name: str) -> None:
        """A graph a second, and each a second time."""
        number = 0
        while True:
            for replicas in (1, 2):
                await self.cluster.apply(objects.paused_graph(GRAPHS, f"{name}-{number}", replicas))
            number = (number + 1) % 8
            await asyncio.sleep(1)

    async def _settled(self, name: str) -> None:
        async def look() -> bool:
            graphs = await self.cluster.items("dynamographdeployments", "--namespace", GRAPHS)
            named = [graph for graph in graphs if graph["metadata"]["name"].startswith(f"{name}-")]
            assert named
            for graph in named:
                key = graph["metadata"]["name"]
                (deployment,) = await self.cluster.items(
                    "deployments",
                    "--namespace",
                    GRAPHS,
                    f"--selector=nvidia.com/dynamo-graph-deployment-name={key}",
                )
                assert deployment["spec"]["replicas"] == graph["spec"]["components"][0]["replicas"], key
                assert graph["status"]["observedGeneration"] == graph["metadata"]["generation"], key
            return True

        await eventually(look, "every graph is as it was last written", 90)
        for graph in await self.cluster.items("dynamographdeployments", "--namespace", GRAPHS):
            if graph["metadata"]["name"].startswith(f"{name}-"):
                await self.cluster.kubectl("delete", "dgd", graph["metadata"]["name"], "--namespace", GRAPHS)

    async def beside(self) -> None:
        values = objects.platform_values(self.found.runtime, namespaces=[TEAM], webhook={"enabled": False})
        values["defaults"]["replicas"] = 1
        for part in ("nats", "etcd"):
            values[part] = {**values[part], "members": 1}
        with self.held.check("a second platform, for one namespace, has Roles and no ClusterRole"):
            await self.cluster.apply(objects.namespace(TEAM, restricted=False))
            await self.cluster.helm(
                *("install", TEAM_RELEASE, f"{self.charts}/dynamo-platform", "--namespace", TEAM, "--wait"),
                *("--values", self.cluster.values("team", values), "--set", "rbac.parts.nodes=false"),
                *("--set", "rbac.aggregate=false", "--timeout=600s"),
                within=630,
            )
            wide = await self.cluster.items("clusterroles,clusterrolebindings", pods.selector(TEAM_RELEASE))
            assert not wide, [each["metadata"]["name"] for each in wide]
            assert await self.cluster.items("roles", "--namespace", TEAM, pods.selector(TEAM_RELEASE))
        with self.held.check(
            "a graph of that namespace is served by it, with the cluster-wide platform scaled to nothing"
        ):
            # Who else could have done it?
            await self.cluster.kubectl(
                *("scale", "deployment", f"{RELEASE}-pod-builder", f"{RELEASE}-watcher", "--replicas=0"),
                *("--namespace", NAMESPACE),
            )
            try:
                await self.cluster.apply(objects.served_graph(TEAM, self.found.runtime, "mocked"))
                await self.successful(TEAM, "mocked")
            finally:
                await self.cluster.kubectl(
                    *("scale", "deployment", f"{RELEASE}-pod-builder", f"{RELEASE}-watcher", "--replicas=2"),
                    *("--namespace", NAMESPACE),
                )
        with self.held.check("the cluster-wide platform leaves that graph alone"):
            await pods.all_ready(self.cluster, NAMESPACE, EXPECTED)
            before = await self.cluster.get("dgd", "mocked", "--namespace", TEAM)
            await self.scale_and_back()
            after = await self.cluster.get("dgd", "mocked", "--namespace", TEAM)
            assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        with self.held.check("the second platform is removed"):
            await self.cluster.kubectl("delete", "dgd", "mocked", "--namespace", TEAM, "--timeout=60s", within=70)
            await self.cluster.helm("uninstall", TEAM_RELEASE, "--namespace", TEAM, "--wait", within=120)

    async def remove(self) -> None:
        workers = pods.uids(await self.graph_pods())
        with self.held.check("helm uninstall of both charts keeps definitions, graphs and their pods, which answer"):
            await self.cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", within=180)
            await self.cluster.helm("uninstall", CRDS, "--namespace", NAMESPACE, "--wait", within=60)
            definitions = await self.cluster.items("customresourcedefinitions")
            assert sum(each["spec"]["group"] == "nvidia.com" for each in definitions) >= 10
            assert pods.uids(await self.graph_pods()) == workers
            await self.chat()
        with self.held.check("nothing cluster-wide of the platform is left but definitions"):
            kinds = "clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations"
            left = await self.cluster.items(kinds, pods.selector(RELEASE))
            assert not left, [f"{each['kind']}/{each['metadata']['name']}" for each in left]
        with self.held.check("installing again adopts the graph: same pods, and a change of it is carried out"):
            await self.cluster.helm("install", CRDS, f"{self.charts}/dynamo-crds", "--namespace", NAMESPACE)
            await self.helm("install")
            await self.successful(GRAPHS, "mocked")
            await self.scale_and_back()
            assert pods.uids(await self.graph_pods()) == workers
            await self.chat()

    @property
    def node_name(self) -> str:
        """The only one."""
        return "dynamo-node"

    async def graph_pods(self) -> list[KubeObject]:
        """Pods of the served graph."""
        selector = "--selector=nvidia.com/dynamo-graph-deployment-name=mocked"
        found = await self.cluster.items("pods", "--namespace", GRAPHS, selector)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    async def successful(self, namespace: str, name: str) -> None:
        """Wait until a graph is, in its present generation."""

        async def look() -> bool:
            graph = await self.cluster.get("dgd", name, "--namespace", namespace)
            status = graph.get("status", {})
            assert status.get("state") == "successful", status.get("conditions")
            return bool(status.get("observedGeneration") == graph["metadata"]["generation"])

        await eventually(look, f"{namespace}/{name} is successful", SERVES_WITHIN)

    async def chat(self) -> None:
        """Through the frontend's Service; it is ready before it has read the workers' model cards."""

        async def look() -> bool:
            status, body = await self.served.chat("Hello", 8)
            assert status == 200, body
            return bool(body["usage"]["completion_tokens"] == 8)

        await eventually(look, "a chat completion", 60)

    async def scale_and_back(self) -> None:
        """A graph that only shows whether changes are carried out: created, changed, removed."""
        name = "changed"

        async def stands(replicas: int) -> None:
            async def look() -> bool:
                selector = f"--selector=nvidia.com/dynamo-graph-deployment-name={name}"
                found = await self.cluster.items("deployments", "--namespace", GRAPHS, selector)
                return [each["spec"]["replicas"] for each in found] == [replicas]

            await self.cluster.apply(objects.paused_graph(GRAPHS, name, replicas))
            await eventually(look, f"{name} has {replicas} replicas", 60)

        await stands(1)
        await stands(2)
        await self.cluster.kubectl("delete", "dgd", name, "--namespace", GRAPHS, "--timeout=60s", within=70)


async def main() -> int:
    """Bring the node up and run the checks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e_platform", description=__doc__)
    parser.add_argument("--charts", default="helm", help="the folder of the charts")
    parser.add_argument("--keep", action="store_true", help="wait at the end, for a look around; Ctrl-C ends it")
    options = parser.parse_args()
    programs = Programs(LineProgress())
    found = await prepared(programs)
    async with AsyncExitStack() as stack:
        node: Any = Node(found.archives, programs, volumes=VOLUMES, prepare=None)
        if not node.lent:
            await stack.enter_async_context(node)
        kube = await stack.enter_async_context(await KubeClient.open(kubeconfig=node.kubeconfig, field_manager="tests"))
        kubectl, helm = await programs.obtain("kubectl"), await programs.obtain("helm")
        cluster = Cluster(node.kubeconfig, kubectl, helm, node.layout.folder)
        code = await Run(cluster, kube, node, found, options.charts).all()
        if options.keep:
            print(f"kept: KUBECONFIG={node.kubeconfig}", flush=True)
            await asyncio.Event().wait()
        return code


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
