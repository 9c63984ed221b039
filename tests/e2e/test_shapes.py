"""Worker types new in Dynamo 1.6, in pods of a real kubelet, answer through a real frontend."""

import tempfile
from pathlib import Path

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.labels import COMPONENT
from dynamo_shared.api.registry.labels import GRAPH_DEPLOYMENT_NAME as GRAPH
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_WORKER_METADATAS,
    LEADER_WORKER_SETS,
    PODS,
    SERVICES,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.discovery import install_crds
from grpc_tools import protoc  # type: ignore[import-untyped]

from tests.integration.leader_worker_sets import DEFINITION
from tests.integration.platform import eventually, until_state

from .graph import WORKER, next_to_an_engine, with_roles
from .images import Images
from .node import Node
from .serving import Served, is_ready

READY_WITHIN = 120.0
ENGINE = Path(__file__).with_name("engine")


async def test_an_engine_without_dynamo_serves_with_the_runtime_as_its_sidecar(
    kube: KubeClient, successful: ObjectKey, runtime_image: Images, node: Node
) -> None:
    namespace = successful.namespace
    files = {"name": "engine", "namespace": namespace}
    await kube.create(CONFIG_MAPS, {**CONFIG_MAPS.type_meta, "metadata": files, "data": _engine()})
    key = await _created(kube, next_to_an_engine(namespace, runtime_image.runtime, files["name"]))
    await until_state(kube, key, "successful", READY_WITHIN)
    served = Served(kube, key, node)
    (pod,) = await served.pods(WORKER)
    (runtime,), (main,) = pod["spec"]["initContainers"], pod["spec"]["containers"]
    assert runtime["restartPolicy"] == "Always"
    assert runtime["readinessProbe"]["httpGet"]["path"] == "/health"
    assert main.get("env", []) == [], "it knows nothing of Dynamo"
    assert main["readinessProbe"]["grpc"]["service"] == "vllm.Inference", "its author's"
    assert is_ready(pod)
    for (state,) in (pod["status"]["initContainerStatuses"], pod["status"]["containerStatuses"]):
        assert state["ready"]
        assert state["restartCount"] == 0
    body = await served.first_answer()
    assert body["choices"][0]["message"]["content"] == "played " * 8, "the words are the engine's"
    assert (await served.answered(WORKER))[pod["metadata"]["name"]] >= 1, "the runtime counted it"
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)


async def test_a_leader_and_a_worker_with_separate_templates_connect_and_serve(
    kube: KubeClient, successful: ObjectKey, runtime_image: Images, node: Node
) -> None:
    await install_crds(kube, [DEFINITION])
    try:
        key = await _created(kube, with_roles(successful.namespace, runtime_image.runtime))
        (group,) = await eventually(
            lambda: kube.list(LEADER_WORKER_SETS, key.namespace), "a LeaderWorkerSet", READY_WITHIN
        )
        leader, worker = await _pods_of(kube, group)
        served = Served(kube, key, node)
        await eventually(lambda: _all_ready(served), "leader and worker are ready", READY_WITHIN)
        status = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
        available = {"type": "Available", "status": "True", "reason": "AllGroupsReady", "message": ""}
        meta = {"name": group["metadata"]["name"], "namespace": key.namespace}
        reported = {**LEADER_WORKER_SETS.type_meta, "metadata": meta, "status": {**status, "conditions": [available]}}
        await kube.apply_status(LEADER_WORKER_SETS, reported)
        await until_state(kube, key, "successful", READY_WITHIN)
        assert [pod["metadata"]["labels"]["plays"] for pod in (leader, worker)] == ["leader", "worker"]
        assert "readinessProbe" in leader["spec"]["containers"][0]
        assert "readinessProbe" not in worker["spec"]["containers"][0], "it serves nothing"
        assert [each["name"] for each in worker["spec"]["initContainers"]] == ["wait-for-leader-mp"]
        log = await node.kubectl("--namespace", key.namespace, "logs", leader["metadata"]["name"])
        assert "node 1 joined node 0" in log
        assert (await served.first_answer())["usage"]["completion_tokens"] == 8
        records = {each["metadata"]["name"] for each in await kube.list(DYNAMO_WORKER_METADATAS, key.namespace)}
        assert leader["metadata"]["name"] in records
        assert worker["metadata"]["name"] not in records
        await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
    finally:
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", str(DEFINITION["metadata"]["name"])))


def _engine() -> dict[str, str]:
    """Files of the stand-in engine, by name, with the code that gRPC generates for it."""
    with tempfile.TemporaryDirectory() as folder:
        made = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
        assert protoc.main(["protoc", f"--proto_path={ENGINE}", *made, "vllm.proto"]) == 0
        return {path.name: path.read_text() for path in (*Path(folder).glob("*.py"), *ENGINE.glob("*.py"))}


async def _pods_of(kube: KubeClient, group: KubeObject) -> list[KubeObject]:
    """Create leader and worker of a replica with its Service, as LeaderWorkerSet would, which does not run here."""
    template, namespace = group["spec"]["leaderWorkerTemplate"], group["metadata"]["namespace"]
    first, pods = f"{group['metadata']['name']}-0", []
    selector = {label: template["leaderTemplate"]["metadata"]["labels"][label] for label in (COMPONENT, GRAPH)}
    service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
    meta = {"name": first, "namespace": namespace}
    await kube.create(SERVICES, {**SERVICES.type_meta, "metadata": meta, "spec": service})
    for index, (name, role) in enumerate(((first, "leaderTemplate"), (f"{first}-1", "workerTemplate"))):
        spec = {**template[role]["spec"], "hostname": name, "subdomain": first}
        values = {"LWS_LEADER_ADDRESS": f"{first}.{first}.{namespace}", "LWS_WORKER_INDEX": str(index)}
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            # First, because other fields may be created from these.
            given = [{"name": variable, "value": value} for variable, value in values.items()]
            container["env"] = [*given, *container.get("env", ())]
        meta = {**template[role]["metadata"], "name": name, "namespace": namespace}
        pods.append(await kube.create(PODS, {**PODS.type_meta, "metadata": meta, "spec": spec}))
    return pods


async def _created(kube: KubeClient, graph: KubeObject) -> ObjectKey:
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph)
    return ObjectKey(graph["metadata"]["namespace"], graph["metadata"]["name"])


async def _all_ready(served: Served) -> bool:
    return len(await served.pods(WORKER)) == len(await served.ready_pods(WORKER)) == 2
