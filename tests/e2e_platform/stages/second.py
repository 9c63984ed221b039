"""A second platform, for one namespace, with Roles only."""

import asyncio

from tests.e2e_platform import objects, pods
from tests.e2e_platform.objects import NAMESPACE, RELEASE
from tests.e2e_platform.platform import EXPECTED, INSTALLS_WITHIN, MOCKED, Platform

TEAM, TEAM_RELEASE = "team-a", "team-platform"
#: Services of the cluster-wide platform; without them it reconciles nothing.
STOPPED = (f"{RELEASE}-pod-builder", f"{RELEASE}-watcher")


async def second(platform: Platform) -> None:
    """Install a second platform, use it, check that the first does not touch its graphs, and remove it."""
    cluster, held = platform.cluster, platform.held
    with held.check("a second platform, for one namespace, has Roles and no ClusterRole"):
        await _install(platform)
        wide = await cluster.items("clusterroles,clusterrolebindings", pods.selector(TEAM_RELEASE))
        assert not wide, [each["metadata"]["name"] for each in wide]
        assert await cluster.items("roles", "--namespace", TEAM, pods.selector(TEAM_RELEASE))
    with held.check("a graph of that namespace is served by it, with the cluster-wide platform scaled to nothing"):
        # No other platform could have reconciled it.
        await cluster.kubectl("scale", "deployment", *STOPPED, "--replicas=0", "--namespace", NAMESPACE)
        try:
            await cluster.apply(objects.served_graph(TEAM, platform.prepared.runtime, MOCKED))
            await platform.successful(TEAM, MOCKED)
        finally:
            await cluster.kubectl("scale", "deployment", *STOPPED, "--replicas=2", "--namespace", NAMESPACE)
    with held.check("the cluster-wide platform leaves that graph alone"):
        await pods.all_ready(cluster, NAMESPACE, EXPECTED)
        before = await cluster.get("dgd", MOCKED, "--namespace", TEAM)
        await platform.carries_out_changes()
        # By now a platform would have written the graph's status or children.
        await asyncio.sleep(5)
        after = await cluster.get("dgd", MOCKED, "--namespace", TEAM)
        assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    with held.check("the second platform is removed, and the first one continues"):
        await cluster.kubectl("delete", "dgd", MOCKED, "--namespace", TEAM, "--timeout=60s", within=70)
        await cluster.helm("uninstall", TEAM_RELEASE, "--namespace", TEAM, "--wait", within=120)
        await platform.chat()
        await platform.carries_out_changes()


async def _install(platform: Platform) -> None:
    values = objects.platform_values(platform.prepared.runtime, namespaces=[TEAM], webhook={"enabled": False})
    values["defaults"]["replicas"] = 1
    for part in ("nats", "etcd"):
        values[part] = {**values[part], "members": 1}
    values["rbac"] = {"aggregate": False, "parts": {"nodes": False}}
    await platform.cluster.apply(objects.namespace(TEAM, restricted=False))
    await platform.cluster.helm(
        *("install", TEAM_RELEASE, str(platform.charts / "dynamo-platform"), "--namespace", TEAM),
        *("--values", platform.cluster.values("team", values), "--wait", f"--timeout={INSTALLS_WITHIN:.0f}s"),
        within=INSTALLS_WITHIN + 30,
    )
