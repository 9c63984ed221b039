"""The pods of a release, as the API server and the kubelet report them."""

from collections import Counter

from dynamo_shared.api.objects import KubeObject

from tests.e2e.serving import is_ready

from .cluster import Cluster, eventually
from .objects import RELEASE

COMPONENT = "app.kubernetes.io/component"
READY_WITHIN = 300.0
#: Kinds that own serving pods; pods of Jobs and of `helm test` end.
SERVING = {"ReplicaSet", "StatefulSet"}


def selector(release: str) -> str:
    """The selector for everything of a release."""
    return f"--selector=app.kubernetes.io/instance={release}"


async def of_release(cluster: Cluster, namespace: str, release: str = RELEASE) -> list[KubeObject]:
    """The release's serving pods, without those of Jobs and terminating ones."""
    pods = await cluster.items("pods", "--namespace", namespace, selector(release))
    return [
        pod
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        and {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())} & SERVING
        and pod["status"].get("phase") not in {"Succeeded", "Failed"}
    ]


async def all_ready(
    cluster: Cluster, namespace: str, expected: dict[str, int], release: str = RELEASE, within: float = READY_WITHIN
) -> list[KubeObject]:
    """The release's pods, once each component has this many and all are ready."""

    async def check() -> list[KubeObject]:
        pods = await of_release(cluster, namespace, release)
        counts = Counter(pod["metadata"]["labels"].get(COMPONENT, "") for pod in pods)
        waiting = sorted(pod["metadata"]["name"] for pod in pods if not is_ready(pod))
        assert not waiting, f"not ready: {waiting}"
        assert dict(counts) == expected, dict(counts)
        return pods

    return list(await eventually(check, f"pods of {release}: {expected}", within))


def uids(pods: list[KubeObject]) -> set[str]:
    """The identities of these pods."""
    return {pod["metadata"]["uid"] for pod in pods}


def restarts(pods: list[KubeObject]) -> int:
    """Container restarts of these pods."""
    return sum(each["restartCount"] for pod in pods for each in pod["status"].get("containerStatuses", ()))
