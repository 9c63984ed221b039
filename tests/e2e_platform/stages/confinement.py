"""`helm test`, Pod Security, and NetworkPolicies."""

from dynamo_shared.api.objects import KubeObject

from tests.e2e.configuration import NETWORK
from tests.e2e_platform import pods
from tests.e2e_platform.cluster import CommandError
from tests.e2e_platform.objects import NAMESPACE, RELEASE
from tests.e2e_platform.platform import GRAPHS, Platform

STRANGER = "stranger"


async def confinement(platform: Platform) -> None:
    """Unwanted connections are blocked, and needed ones work."""
    cluster, held = platform.cluster, platform.held
    with held.check("helm test: a graph answers a chat completion, in the namespace that enforces `restricted`"):
        output = await cluster.helm("test", RELEASE, "--namespace", NAMESPACE, "--timeout=300s", within=330)
        assert "Succeeded" in output, "the chart has no test"
    with held.check("Pod Security refuses a pod that is not restricted"):
        command = ("run", "root", "--namespace", NAMESPACE, f"--image={platform.prepared.runtime}", "--privileged")
        assert "violates PodSecurity" in await cluster.refusal(*command)
    if NETWORK.family == 4:  # kube-router 2.1.0 puts no policy into effect with IPv6 (its issue 1653)
        with held.check("NetworkPolicies (kube-router): NATS and etcd are closed to other pods, the API server is not"):
            await _ports_are_closed(platform)


async def _ports_are_closed(platform: Platform) -> None:
    cluster = platform.cluster
    await cluster.apply(_pod(platform.prepared.runtime))
    await cluster.kubectl("wait", "--namespace", GRAPHS, "--for=condition=Ready", f"pod/{STRANGER}", "--timeout=50s")

    async def reaches(host: str, port: int) -> bool:
        code = f"import socket; socket.create_connection(({host!r}, {port}), 3).close(); print('open')"
        try:
            output = await cluster.kubectl("exec", "--namespace", GRAPHS, STRANGER, "--", "python3", "-c", code)
        except CommandError:
            return False
        return "open" in output

    services = await cluster.items("services", "--namespace", NAMESPACE, pods.selector(RELEASE))
    addresses = {each["metadata"]["name"]: each["spec"]["clusterIP"] for each in services}
    assert await reaches("kubernetes.default.svc", 443), "the API server is not reached either"
    for part, port in (("nats", 4222), ("etcd", 2379)):
        assert not await reaches(addresses[f"{RELEASE}-{part}"], port), f"a pod of another namespace reaches {part}"
    await cluster.kubectl("delete", "pod", STRANGER, "--namespace", GRAPHS, "--wait=false")


def _pod(image: str) -> KubeObject:
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": ["sleep", "3600"]}
    metadata = {"name": STRANGER, "namespace": GRAPHS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
