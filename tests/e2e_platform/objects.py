"""What is installed and used: values of the charts, and graphs of the real frontend and mocker."""

from typing import Any

from dynamo_shared.api.objects import KubeObject

from tests.containers.stand_ins import NATS
from tests.e2e import graph
from tests.e2e.configuration import NETWORK, PAUSE_IMAGE
from tests.e2e.images import MODEL_FOLDER

from .prepare import TAG

RELEASE, NAMESPACE = "dynamo-platform", "dynamo-system"
CRDS = "dynamo-crds"
SERVICES = ("watcher", "pod-builder", "scaler", "model-discovery", "profiler", "planner", "admission", "dynadmin")
#: Values that the released version does not have.
ADDED = frozenset({"profiler", "dynadmin"})
RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
#: The node has two cores and must have room for a second platform; limits and memory are the chart's.
SMALL = {"requests": {"cpu": "10m"}}
#: The runtime listens on IPv4 by default (docs/install.md).
LISTENING = {"DYN_HTTP_HOST": "::", "DYN_SYSTEM_HOST": "::"}


def namespace(name: str, *, restricted: bool = False) -> KubeObject:
    """A namespace; `restricted` makes Pod Security enforce the profile of that name."""
    labels = RESTRICTED if restricted else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def platform_values(runtime_image: str, *, released: bool = False, **more: Any) -> dict[str, Any]:
    """The chart's defaults, except images, which no registry has; `released`: for the previously released version."""
    built = {"tag": TAG, "pullPolicy": "Never"}
    servers = {"image": {"pullPolicy": "Never"}, "resources": SMALL}
    return {
        "image": built,
        "plannerImage": built,
        "defaults": {"resources": SMALL},
        "services": {
            name: {"resources": SMALL}
            for name in ("profiler", "planner", "admission")
            if not (released and name in ADDED)
        },
        # The released chart has the tag of another NATS, for which there is no stand-in image.
        "nats": {**servers, "image": {"pullPolicy": "Never", "tag": NATS.rpartition(":")[2]}},
        "etcd": servers,
        **({"config": {"platform": {"graphEnv": LISTENING}}} if NETWORK.family == 6 else {}),
        "tests": {"image": runtime_image, "model": MODEL_FOLDER},
        **more,
    }


def served_graph(namespace: str, image: str, name: str) -> KubeObject:
    """A frontend with a prefill and a decode worker that answer chat completions.

    With IPv6 one worker does both: prefill workers of the mocker wait for decode workers only on IPv4.
    """
    return (graph.disaggregated if NETWORK.family == 4 else graph.aggregated)(namespace, image, name)


def paused_graph(namespace: str, name: str, replicas: int) -> KubeObject:
    """A cheap graph: this many pods that wait and never serve."""
    container = {"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never", "command": ["/pause"]}
    component = {
        "name": "Frontend", "type": "frontend", "replicas": replicas, "podTemplate": {"spec": {"containers": [container]}},
    }  # fmt: skip
    metadata = {"name": name, "namespace": namespace}
    spec = {"backendFramework": "vllm", "components": [component]}
    return {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}
