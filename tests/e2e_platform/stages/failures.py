"""Pods that are killed, and a node that is drained."""

from contextlib import suppress

from tests.e2e_platform import pods
from tests.e2e_platform.cluster import CommandError
from tests.e2e_platform.objects import NAMESPACE, RELEASE
from tests.e2e_platform.platform import EXPECTED, NODE, Platform


async def kill(platform: Platform) -> None:
    """Kill every pod of the platform, one of each kind at a time."""
    cluster, held = platform.cluster, platform.held
    present = await pods.of_release(cluster, NAMESPACE)
    workers = pods.uids(await platform.graph_pods())
    rounds: dict[str, list[str]] = {}
    for pod in present:
        rounds.setdefault(pod["metadata"]["labels"][pods.COMPONENT], []).append(pod["metadata"]["name"])
    with held.check(f"each of {len(present)} pods of the platform is killed, one of each kind at a time"):
        for number in range(max(map(len, rounds.values()))):
            names = [names[number] for names in rounds.values() if number < len(names)]
            await cluster.kubectl("delete", "pod", *names, "--namespace", NAMESPACE, "--grace-period=0", "--force")
            await pods.all_ready(cluster, NAMESPACE, EXPECTED)
    with held.check("the graph's pods are the same, it answers, and a change of it is reconciled"):
        assert pods.uids(await platform.graph_pods()) == workers
        await platform.chat()
        await platform.carries_out_changes()


async def drain(platform: Platform) -> None:
    """There is one node, so a drain cannot complete: the remaining pods must do the work."""
    cluster, held = platform.cluster, platform.held
    try:
        with held.check("a drain of the node leaves one replica of each service, and changes are reconciled"):
            with suppress(CommandError):
                await cluster.kubectl(
                    *("drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--force"),
                    *(f"--pod-selector=app.kubernetes.io/instance={RELEASE}", "--timeout=25s"),
                    within=60,
                )
            left = await pods.of_release(cluster, NAMESPACE)
            running = {pod["metadata"]["labels"][pods.COMPONENT] for pod in left if pod["spec"].get("nodeName")}
            assert running == set(EXPECTED), running
            await platform.carries_out_changes()
    finally:
        await cluster.kubectl("uncordon", NODE)
    with held.check("after the drain everything is back"):
        await pods.all_ready(cluster, NAMESPACE, EXPECTED)
