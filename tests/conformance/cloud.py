"""What clouds of the examples have and KWOK's nodes lack: network cards, and volumes for claims."""

from dynamo_shared.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, Resource
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import AlreadyExists

PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CARDS = {"vpc.amazonaws.com/efa": "32"}


async def add_network_cards(kube: KubeClient) -> None:
    """Give every node the network cards that examples ask for."""
    for node in await kube.list(NODES):
        name = {"name": node["metadata"]["name"]}
        identity = {**NODES.type_meta, "metadata": name}
        await kube.apply_status(NODES, {**identity, "status": {"capacity": CARDS, "allocatable": CARDS}})


async def bind_claims(kube: KubeClient, namespace: str) -> None:
    """Create a volume for each claim of a namespace: no provisioner runs here."""
    for claim in await kube.list(PERSISTENT_VOLUME_CLAIMS, namespace):
        spec, name = claim["spec"], claim["metadata"]["name"]
        volume = {
            **PERSISTENT_VOLUMES.type_meta,
            "metadata": {"name": f"{namespace}-{name}"},
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "storageClassName": spec.get("storageClassName", ""),
                "claimRef": {"namespace": namespace, "name": name},
                "hostPath": {"path": f"/volumes/{namespace}/{name}"},
            },
        }
        try:
            await kube.create(PERSISTENT_VOLUMES, volume)
        except AlreadyExists:
            continue
