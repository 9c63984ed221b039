"""Objects at the size limits of the API server, and numbers at the limits of their types."""

from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels

from tests.hostile import texts
from tests.hostile.attack import attack, stored
from tests.hostile.objects import IMAGE, checkpoint, component, config_map, graph, model, obj, pods, request
from tests.hostile.world import World

ROW = "an object over 1 MiB"
NUMBERS = "numbers"
#: etcd accepts 1.5 MiB in one request, including the API server's copy with managedFields.
LARGE = 1_000_000
#: Variables of a template of about 740 KB; as Python objects they take about 8 MB.
VARIABLES = 25_000


def _large_template(size: int, pieces: int = 1) -> KubeObject:
    return pods(env=[{"name": f"V{number}", "value": "v" * (size // pieces)} for number in range(pieces)])


def _others(count: int) -> KubeObject:
    """A pod template with this many containers next to the main one."""
    return pods(*({"name": f"c{n}", "image": IMAGE} for n in range(count)))


for _size in (400_000, 900_000, 1_050_000, 1_300_000):
    stored(
        f"graph-{_size // 1000}k",
        ROW,
        f"a graph of {_size} bytes",
        lambda ns, size=_size: [graph(ns, "large", component("Frontend", "frontend", template=_large_template(size)))],  # type: ignore[misc]
        linger=2.0,
        slack=2.0,
    )


@attack(
    "gpu-memory-clients",
    ROW,
    "a graph of 8,000 containers, and 40,000 others that are to use its GPU memory",
    must="admission refuses it, and does not spend the API server's whole time-out on it",
)
async def _clients(world: World) -> None:
    memory = {"mode": "IntraPod", "extraClientContainers": [f"gone-{n}" for n in range(40_000)]}
    part = component("Worker", template=_others(8000), experimental={"gpuMemoryService": memory})
    answer = await world.create(graph(world.namespace, "clients", part))
    assert answer.status == 422, f"the answer is {answer}"


stored(
    "graph-env-20000",
    ROW,
    "a graph with 20,000 variables in a container",
    lambda ns: [graph(ns, "large", component("Frontend", "frontend", template=_large_template(400_000, 20_000)))],
    linger=2.0,
    slack=2.0,
)
stored(
    "graph-containers-800",
    ROW,
    "a graph with 800 containers in a pod",
    lambda ns: [graph(ns, "large", component("Frontend", "frontend", template=_others(800)))],
    linger=2.0,
    slack=2.0,
)
stored(
    "graph-components-25-large",
    ROW,
    "a graph of 25 components of 35 KB each",
    lambda ns: [
        graph(
            ns,
            "large",
            component("Frontend", "frontend"),
            *(component(f"Worker{n}", "worker", template=_large_template(35_000)) for n in range(12)),
        )
    ],
    linger=4.0,
    slack=4.0,
)
stored(
    "graph-components-2000",
    ROW,
    "a graph of 2,000 components",
    lambda ns: [graph(ns, "many", *(component(f"W{n}") for n in range(2000)))],
    slack=2.0,
)
stored(
    "graph-components-same-name",
    "names",
    "a graph whose components share names but for their case",
    lambda ns: [graph(ns, "same", *(component(name) for name in ("Worker", "worker", "WORKER", "wORKER")))],
)
stored(
    "graph-labels-2000",
    ROW,
    "a graph with 2,000 labels and 1,000 annotations",
    lambda ns: [
        graph(
            ns,
            "labelled",
            labels={f"l{n}": "v" * 60 for n in range(2000)},
            annotations={f"a{n}": "v" * 200 for n in range(1000)},
        )
    ],
    linger=2.0,
)


def _component_deployment(ns: str, name: str, **spec: Any) -> KubeObject:
    return obj(
        resources.DYNAMO_COMPONENT_DEPLOYMENTS,
        ns,
        name,
        spec={"backendFramework": "vllm", **component("Lone", "worker"), **spec},
    )


stored(
    "component-deployment-1300k",
    ROW,
    "a component deployment of 1.3 MB",
    lambda ns: [_component_deployment(ns, "large", podTemplate=_large_template(1_300_000))],
    linger=2.0,
    slack=2.0,
)
stored(
    "config-map-1m-of-graph",
    ROW,
    "ConfigMaps of a megabyte that carry a graph's label, ten of them",
    lambda ns: [
        config_map(ns, f"large-{n}", {"x": "v" * LARGE}, labels={labels.GRAPH_DEPLOYMENT_NAME: "x"}) for n in range(10)
    ],
    linger=2.0,
)
stored(
    "worker-metadata-1m",
    ROW,
    "a DynamoWorkerMetadata of a megabyte",
    lambda ns: [obj(resources.DYNAMO_WORKER_METADATAS, ns, "large", spec={"data": {"endpoints": {"x": "v" * LARGE}}})],
    linger=2.0,
)
stored(
    "request-1m",
    ROW,
    "a request with a megabyte of overrides",
    lambda ns: [request(ns, "large", spec={"overrides": {"dgd": {"metadata": {"annotations": {"x": "v" * LARGE}}}}})],
    linger=2.0,
)
stored(
    "model-1m",
    ROW,
    "a DynamoModel with a name of a megabyte",
    lambda ns: [
        model(ns, "large", modelName="m" * LARGE),
        model(ns, "source", modelType="lora", source={"uri": "s3://" + "b" * LARGE}),
    ],
    linger=2.0,
)
stored(
    "checkpoint-1m",
    ROW,
    "a DynamoCheckpoint with a megabyte of variables",
    lambda ns: [checkpoint(ns, "large", podTemplateSpec=_large_template(LARGE))],
    linger=2.0,
)
stored(
    "checkpoints-25000-variables",
    ROW,
    "16 DynamoCheckpoints of one identity, each with 25,000 variables",
    lambda ns: [checkpoint(ns, f"large-{n}", podTemplateSpec=_large_template(VARIABLES, VARIABLES)) for n in range(16)],
    linger=8.0,
    slack=2.0,
    memory=112.0,
)
stored(
    "replicas",
    NUMBERS,
    "components with invalid numbers of replicas, and with the largest valid number but no nodes for them",
    lambda ns: [
        graph(ns, f"numbers-{number}", component("Frontend", "frontend", replicas=replicas))
        for number, replicas in enumerate((-1, 2**63, 1e300, 1.5, "1", None, True))
    ],
)
stored(
    "quantities",
    NUMBERS,
    "graphs with impossible or invalid quantities",
    lambda ns: [
        graph(
            ns,
            f"quantity-{number}",
            component(
                "Frontend", "frontend", template=pods(resources={"limits": {"nvidia.com/gpu": each, "memory": each}})
            ),
        )
        for number, each in enumerate(texts.QUANTITIES)
    ],
    linger=2.0,
)
stored(
    "shared-memory-quantities",
    NUMBERS,
    "shared memory of impossible quantities",
    lambda ns: [
        graph(ns, f"shared-{number}", component("Frontend", "frontend", sharedMemorySize=each))
        for number, each in enumerate(texts.QUANTITIES)
    ],
    linger=2.0,
)
stored(
    "multinode",
    NUMBERS,
    "components that span 2^31 - 1 nodes, none, and fewer",
    lambda ns: [
        graph(ns, f"nodes-{number}", component("Worker", "worker", multinode={"nodeCount": each}))
        for number, each in enumerate((2**31 - 1, 0, -1, 1, 10**6))
    ],
    linger=2.0,
)
stored(
    "names",
    "names",
    "components, models and images with names of every kind",
    lambda ns: [
        graph(
            ns,
            f"name-{number}",
            component(each or "x", "frontend", image=each),
            component(each, "worker", modelRef={"name": each}),
        )
        for number, each in enumerate(texts.NAMES)
    ],
    linger=2.0,
)
stored(
    "long-names",
    "names",
    "a graph with the longest possible name, and components with long ones",
    lambda ns: [
        graph(ns, "g" * 253, component("W" * 63, "worker"), component("F" * 200, "frontend")),
        graph(ns, "g" * 63, component("W" * 63, "worker")),
        graph(ns, "g" * 45, component("W" * 63, "worker"), component("W" * 62 + "X", "worker")),
    ],
    linger=2.0,
)
