"""Objects with odd fields: forged status, labels, owners, finalizers, managed fields, worker records, autoscalers."""

import json
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, Resource

from tests.hostile import texts
from tests.hostile.attack import attack, stored
from tests.hostile.objects import (
    checkpoint,
    component,
    condition,
    config_map,
    disaggregated,
    graph,
    model,
    obj,
    pods,
    request,
)
from tests.hostile.world import World
from tests.integration.platform import eventually

STATUS = "forged status"
METADATA = "metadata"
WORKERS = "workers of two namespaces"
ODD = "odd objects"
ADAPTERS, COMPONENTS = resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, resources.DYNAMO_COMPONENT_DEPLOYMENTS

_CONDITIONS: tuple[Any, ...] = (
    [condition(message="m" * 30_000, since="2026-01-01T00:00:00Z")],
    [condition(f"T{n}") for n in range(3000)],
    [condition(status="False", since="9999-12-31T23:59:59Z")],
)


_NEGATIVE = {"replicas": -5, "readyReplicas": -(2**31)}


async def _forge(world: World, resource: Resource, name: str, status: Any) -> None:
    await world.patch(resource, name, {"status": status}, "status")


@attack("graph-status", STATUS, "the status of a graph forged in every way, again and again", linger=2.0)
async def _graph_status(world: World) -> None:
    await world.create(disaggregated(world.namespace, "forged"))
    for status in (
        {"state": "successful", "observedGeneration": 2**62},
        {"components": {f"c{n}": {"kind": "Deployment", "componentName": "x", "replicas": 1} for n in range(2000)}},
        {"components": {"Frontend": {"kind": "Deployment", "componentNames": ["../x"], **_NEGATIVE}}},
        {"rollingUpdate": {"phase": "InProgress", "startTime": "9999-12-31T23:59:59Z"}},
        {"restart": {"observedID": "x" * 100_000, "phase": "Restarting", "inProgress": ["Frontend"] * 1000}},
        {"checkpoints": {"Frontend": {"checkpointName": "../../x", "identityHash": "y" * 10_000}}},
        *({"conditions": each} for each in _CONDITIONS),
    ):
        await _forge(world, DYNAMO_GRAPH_DEPLOYMENTS, "forged", status)


@attack("component-status", STATUS, "the status of component deployments forged", linger=2.0)
async def _component_status(world: World) -> None:
    await world.create(disaggregated(world.namespace, "forged"))
    await eventually(lambda: world.admin.list(COMPONENTS, world.namespace), "component deployments")
    for each in await world.admin.list(COMPONENTS, world.namespace):
        for status in (
            {"observedGeneration": 2**62, "component": {"kind": "Deployment", "replicas": 10**9}},
            {"podSelector": {f"k{n}": "v" for n in range(5000)}},
            *({"conditions": entry} for entry in _CONDITIONS),
        ):
            await _forge(world, COMPONENTS, each["metadata"]["name"], status)


_ODD_GRAPH: dict[str, Any] = {"spec": {"components": [1, None, {}]}}


@attack(
    "request-status", STATUS, "the status of a request forged: phases, results, jobs of other namespaces", linger=3.0
)
async def _request_status(world: World) -> None:
    await world.create(request(world.namespace, "forged"))
    for status in (
        {"phase": "Ready", "dgdName": "../../quiet/x"},
        {"phase": "Deploying", "dgdName": "x" * 5000, "profilingResults": {"selectedConfig": _ODD_GRAPH}},
        {"phase": "Profiling", "profilingJobName": "kube-root-ca.crt"},
        {"phase": "Deployed", "deploymentInfo": {"replicas": -1, "availableReplicas": 10**9}},
        *({"conditions": each} for each in _CONDITIONS),
    ):
        await _forge(world, resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, "forged", status)


@attack(
    "adapter-status",
    STATUS,
    "the status of scaling adapters forged, and their scale changed again and again",
    linger=2.0,
)
async def _adapter_status(world: World) -> None:
    await world.create(graph(world.namespace, "scaled", component("Frontend", "frontend", scalingAdapter={})))
    items = await eventually(lambda: world.admin.list(ADAPTERS, world.namespace), "an adapter")
    name = items[0]["metadata"]["name"]
    for status in (
        {"replicas": 2**31 - 1, "selector": "a in (" + "b," * 10_000 + "c)", "lastScaleTime": "9999-12-31T23:59:59Z"},
        {"conditions": [condition("DGDReady")]},
    ):
        await _forge(world, ADAPTERS, name, status)
    for replicas in (2, 1) * 30:
        await world.patch(ADAPTERS, name, {"spec": {"replicas": replicas}}, "scale")


_GRAPHS = ("one", "quiet/probe", "none")
stored(
    "adapters-of-nothing",
    ODD,
    "200 adapters of missing graphs, of other namespaces' graphs, and of one component together",
    lambda ns: [
        graph(ns, "one"),
        *(
            obj(
                ADAPTERS,
                ns,
                f"adapter-{n}",
                spec={"replicas": n % 3, "dgdRef": {"name": _GRAPHS[n % 3], "componentName": "Frontend"}},
            )
            for n in range(200)
        ),
    ],
    linger=2.0,
    slack=2.0,
)


def _owner(n: int) -> dict[str, Any]:
    uid = f"00000000-0000-0000-0000-{n:012d}"
    return {"apiVersion": "v1", "kind": ("ConfigMap", "Node")[n % 2], "name": f"o{n}", "uid": uid}


stored(
    "many-owners",
    METADATA,
    "graphs with 3,000 owners, including themselves and nodes",
    lambda ns: [graph(ns, "owned", metadata={"ownerReferences": [_owner(n) for n in range(3000)]})],
    # Kubernetes' garbage collector queries the API server for each of them.
    slack=3.0,
)
stored(
    "own-finalizers",
    METADATA,
    "graphs, requests and models with 500 finalizers of their own",
    lambda ns: [
        {**each, "metadata": {**each["metadata"], "finalizers": [f"hostile.example/f{n}" for n in range(500)]}}
        for each in (graph(ns, "f"), request(ns, "f"), model(ns, "f"))
    ],
    linger=2.0,
)


@attack("managed-fields", METADATA, "a graph with 60 field managers", linger=1.0)
async def _managed_fields(world: World) -> None:
    await world.create(graph(world.namespace, "managed"))
    for number in range(60):
        patch = obj(DYNAMO_GRAPH_DEPLOYMENTS, world.namespace, "managed", annotations={f"m{number}": "x" * 2000})
        world.note(await world.tenant.apply(patch, f"manager-{number}"))


def _metadata(ns: str, name: str, data: Any, **fields: Any) -> KubeObject:
    return obj(resources.DYNAMO_WORKER_METADATAS, ns, name, spec={"data": data}, **fields)


def _card(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "namespace": "quiet-probe",
        "component": "backend",
        "endpoint": "generate",
        "instance_id": number,
        "card_json": {"display_name": "model", "runtime_config": {"total_kv_blocks": 1, "max_num_seqs": 1}, **fields},
    }


_ENDPOINT = {"namespace": "n", "component": "c", "endpoint": "e", "transport": {"nats_tcp": "x"}}
_RECORDS: dict[str, Any] = {
    "text": texts.nested(30_000),
    "list": [1, 2, 3],
    "numbers": {"endpoints": {"a": {"namespace": 1, "component": None, "endpoint": [], "instance_id": 10**400}}},
    "negative": {"model_cards": {"a": _card(-1), "b": _card(2**64), "c": _card(0, context_length=-(2**63))}},
    "many": {
        "endpoints": {f"e{n}": {**_ENDPOINT, "instance_id": n} for n in range(4000)},
        "model_cards": {f"m{n}": _card(n) for n in range(1200)},
    },
    "deep-card": {
        "model_cards": {
            "a": _card(
                1, runtime_config=json.loads(texts.nested(300, '{"a":', "}").replace("{}", "{}").replace(":}", ":1}"))
            )
        }
    },
    "long-names": {"model_cards": {"a": _card(1, display_name="m" * 300_000)}},
    "controls": {"model_cards": {"a": _card(1, display_name="\x1b[31m\u202e\u0000\ufeff" * 50)}},
}
for _name, _data in _RECORDS.items():
    stored(
        f"worker-record-{_name}",
        "forged worker records",
        f"a DynamoWorkerMetadata with odd data: {_name}",
        lambda ns, data=_data: [_metadata(ns, "forged", data)],  # type: ignore[misc]
    )
stored(
    "worker-records-500",
    "forged worker records",
    "500 DynamoWorkerMetadata of missing pods",
    lambda ns: [_metadata(ns, f"forged-{n}", {"model_cards": {"a": _card(n)}}) for n in range(500)],
    slack=2.0,
)


@attack(
    "worker-of-another-namespace",
    WORKERS,
    "records, slices and pods that claim to be workers of a graph in another namespace",
    must="no event and no record names them as workers of the other namespace's graph",
    linger=2.0,
)
async def _foreign_worker(world: World) -> None:
    object_labels = {
        labels.GRAPH_DEPLOYMENT_NAME: "probe",
        labels.COMPONENT: "Frontend",
        labels.DYNAMO_NAMESPACE: "quiet-probe",
        labels.DISCOVERY_ENABLED: "true",
    }
    spec = {"containers": [{"name": "main", "image": "x"}]}
    await world.create(obj(resources.PODS, world.namespace, "worker-0", labels=object_labels, spec=spec))
    target = {"targetRef": {"kind": "Pod", "namespace": "quiet", "name": "worker-0"}}
    await world.create(_slice(world.namespace, "worker-0", {**_endpoint("10.0.0.1"), **target}, labels=object_labels))
    await world.create(_metadata(world.namespace, "worker-0", {"model_cards": {"a": _card(7)}}))


def _slice(ns: str, name: str, *endpoints: Any, **fields: Any) -> KubeObject:
    return obj(resources.ENDPOINT_SLICES, ns, name, addressType="IPv4", endpoints=list(endpoints), **fields)


def _endpoint(address: str) -> dict[str, Any]:
    return {"addresses": [address], "conditions": {"ready": True}}


stored(
    "pods-of-components",
    ODD,
    "300 pods that carry the labels of a graph's components, of other graphs and of no graph",
    lambda ns: [
        graph(ns, "podded"),
        *(
            obj(
                resources.PODS,
                ns,
                f"pretender-{n}",
                labels={
                    labels.COMPONENT: "Frontend",
                    labels.GRAPH_DEPLOYMENT_NAME: ("podded", "probe", "")[n % 3],
                    labels.SELECTOR: "podded-frontend",
                },
                spec={"containers": [{"name": "main", "image": "x", "command": ["c" * 1000]}]},
            )
            for n in range(300)
        ),
    ],
    linger=2.0,
    slack=3.0,
)
stored(
    "endpoint-slices",
    ODD,
    "EndpointSlices and Endpoints that carry a model's label and point elsewhere",
    lambda ns: [
        model(ns, "m", modelType="lora", source={"uri": "s3://b/m"}),
        *(
            _slice(
                ns,
                f"slice-{n}",
                *(_endpoint(f"10.{n}.{m}.1") for m in range(100)),
                labels={labels.BASE_MODEL_HASH: "0" * 16, labels.COMPONENT: "x"},
            )
            for n in range(50)
        ),
    ],
    linger=2.0,
)
_METRIC = {"metric": {"name": "m" * 200}, "target": {"type": "Value", "value": "9E"}}
stored(
    "autoscalers",
    ODD,
    "HorizontalPodAutoscalers with a graph's label that scale deployments, adapters and nothing",
    lambda ns: [
        graph(ns, "auto", component("Frontend", "frontend", scalingAdapter={})),
        *(
            obj(
                resources.HORIZONTAL_POD_AUTOSCALERS,
                ns,
                f"hpa-{n}",
                labels={labels.GRAPH_DEPLOYMENT_NAME: "auto"},
                spec={
                    "maxReplicas": 2**31 - 1,
                    "scaleTargetRef": {"apiVersion": version, "kind": "Deployment", "name": "auto-frontend"},
                    "metrics": [{"type": "External", "external": _METRIC}],
                },
            )
            for n, version in enumerate(("nvidia.com/v1beta1", "apps/v1", "x/v1") * 20)
        ),
    ],
    linger=2.0,
)
stored(
    "components-of-no-graph",
    ODD,
    "200 component deployments that name missing graphs or graphs of others",
    lambda ns: [
        obj(
            COMPONENTS,
            ns,
            f"orphan-{n}",
            labels={labels.GRAPH_DEPLOYMENT_NAME: ("none", "probe-1", "x" * 63)[n % 3]},
            spec={"backendFramework": "vllm", **component("Lone", "worker", replicas=0)},
        )
        for n in range(200)
    ],
    linger=2.0,
    slack=3.0,
)
stored(
    "checkpoints",
    ODD,
    "50 checkpoints of one identity, with deadlines of 2^62 seconds and without",
    lambda ns: [
        checkpoint(
            ns, f"checkpoint-{n}", activeDeadlineSeconds=(2**62, 1, 0, -1)[n % 4], podTemplateSpec=pods(image="x")
        )
        for n in range(50)
    ],
    linger=2.0,
)
_OLD_SERVICES: tuple[tuple[Any, str], ...] = (
    ({}, "{}"),
    ({"A": {"componentType": "frontend"}}, texts.nested(100_000)),
    ({f"S{m}": {"componentType": "worker"} for m in range(300)}, "9" * 100_000),
    (
        {"A": {"componentType": "frontend", "autoscaling": {"minReplicas": -1}}},
        '{"A": {"ServiceArgs": {"workers": 1e300}}}',
    ),
)
stored(
    "old-kinds",
    ODD,
    "kinds before graphs, and graphs in v1alpha1 with odd services",
    lambda ns: [
        obj(resources.DYNAMO_DEPLOYMENTS, ns, "old", spec={"dynamoComponent": "x" * 1000}),
        *(
            {
                **obj(DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1"), ns, f"alpha-{n}"),
                "spec": {"services": services, "envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": text}]},
            }
            for n, (services, text) in enumerate(_OLD_SERVICES)
        ),
    ],
    linger=2.0,
)
stored(
    "events",
    "Events",
    "2,000 Events about graphs of the namespace, with the platform's reasons",
    lambda ns: [
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"e-{n}", "namespace": ns},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "dynamo-pod-builder",
            "reportingInstance": "x",
            "action": "Reconcile",
            "reason": "Ready",
            "type": "Normal",
            "note": "n" * 900,
            "regarding": {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "namespace": ns, "name": "x"},
        }
        for n in range(500)
    ],
    slack=2.0,
)
stored(
    "planner-config-elsewhere",
    ODD,
    "a PlannerConfig named by a path, by another namespace's name, by 200 KB",
    lambda ns: [
        config_map(ns, "c", {"planner_config.yaml": "mode: disagg"}),
        *(
            disaggregated(ns, f"names-{n}", annotations={"nvidia.com/planner-config": each})
            for n, each in enumerate(("../quiet/c", "quiet/c", "c" * 200_000, " ", "c\n", "C"))
        ),
    ],
    linger=2.0,
    slack=2.0,
)
