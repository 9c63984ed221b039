"""`helm uninstall` of both charts, and a second installation."""

from tests.e2e_platform import pods
from tests.e2e_platform.cluster import eventually
from tests.e2e_platform.objects import CRDS, NAMESPACE, RELEASE
from tests.e2e_platform.platform import GRAPHS, MOCKED, Platform

#: All cluster-wide objects of the platform, except definitions. The webhook configurations have no label of the release.
CLUSTER_WIDE = "clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations"
DEFINITIONS = 10


async def remove(platform: Platform) -> None:
    """Graphs keep running without a platform, and a new installation adopts them."""
    cluster, held = platform.cluster, platform.held
    workers = pods.uids(await platform.graph_pods())
    with held.check("helm uninstall of both charts keeps definitions, graphs and their pods, which answer"):
        await cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", within=180)
        await cluster.helm("uninstall", CRDS, "--namespace", NAMESPACE, "--wait", within=60)
        definitions = await cluster.items("customresourcedefinitions")
        assert sum(each["spec"]["group"] == "nvidia.com" for each in definitions) == DEFINITIONS
        assert pods.uids(await platform.graph_pods()) == workers
        await platform.chat()
    with held.check("nothing cluster-wide of the platform is left but definitions"):

        async def gone() -> bool:
            result = await cluster.items(CLUSTER_WIDE)
            left = [f"{each['kind']}/{each['metadata']['name']}" for each in result]
            own = [name for name in left if "dynamo" in name]
            assert not own, own
            return True

        # The webhook configurations belong to a ClusterRole of the release; the garbage collector deletes them.
        await eventually(gone, "they are gone", 60)
    with held.check("installing again adopts the graph: same pods, and a change of it is reconciled"):
        await platform.install_definitions()
        await platform.helm("install")
        await platform.successful(GRAPHS, MOCKED)
        await platform.carries_out_changes()
        assert pods.uids(await platform.graph_pods()) == workers
        await platform.chat()
