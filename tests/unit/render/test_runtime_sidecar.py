"""The Dynamo runtime as a sidecar of an engine that does not know it, from Dynamo 1.6 on."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.render import RenderError
from dynamo_pod_builder.render.access.pull_secrets import PullSecrets
from dynamo_shared.api.objects import KubeObject

from .building import CONFIG, component, component_children, graph, graph_children, of_kind, pod, variables, workloads

ENGINE: dict[str, Any] = {
    "image": "vllm/vllm-openai:v0.31.0",
    "args": ["--model", "m"],
    "env": [{"name": "OWN", "value": "engine"}],
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
}
RUNTIME: dict[str, Any] = {"name": "runtime", "image": "registry/sidecar:1.6.0", "restartPolicy": "Always"}
INFRASTRUCTURE = replace(CONFIG, infrastructure=(("NATS_SERVER", "nats://n:4222"),), discovery_backend="kubernetes")


def engine(main: KubeObject | None = None, **fields: Any) -> KubeObject:
    """A worker with the runtime as a sidecar; `runtime` has fields of that container."""
    before = fields.pop("before", [])
    sidecar = {**RUNTIME, **fields.pop("runtime", {})}
    return component(main=ENGINE if main is None else main, pod={"initContainers": [*before, sidecar]}, **fields)


def runtime_of(single: KubeObject, config: Any = INFRASTRUCTURE, **fields: Any) -> KubeObject:
    *_, container = pod(single, config, **fields)["initContainers"]
    assert container["name"] == "runtime"
    result: KubeObject = container
    return result


@pytest.mark.parametrize("type_", ["worker", "prefill", "decode"])
def test_the_runtime_gets_the_fields_that_main_has_otherwise(type_: str) -> None:
    container = runtime_of(engine(type_=type_))
    assert (container["image"], container["restartPolicy"]) == (RUNTIME["image"], "Always")
    assert container["ports"] == [{"name": "system", "containerPort": 9090, "protocol": "TCP"}]
    assert "command" not in container
    asked = {name: each["httpGet"] for name, each in container.items() if name.endswith("Probe")}
    live, health = ({"path": path, "port": "system"} for path in ("/live", "/health"))
    assert asked == {"startupProbe": live, "livenessProbe": live, "readinessProbe": health}
    given = variables(container)
    expected = {"DYN_COMPONENT": type_, "DYN_SYSTEM_PORT": "9090", "NATS_SERVER": "nats://n:4222"}
    assert {**given, **expected} == given
    assert {"DYN_NAMESPACE", "DYN_NAMESPACE_WORKER_SUFFIX", "POD_UID"} <= given.keys()
    assert (
        not {"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS", "DYN_HEALTH_CHECK_ENABLED", "NIXL_TELEMETRY_ENABLE"}
        & given.keys()
    )


def test_the_engine_stays_as_written_except_for_shared_memory() -> None:
    main, *_ = pod(engine(), INFRASTRUCTURE)["containers"]
    memory = [{"name": "shared-memory", "mountPath": "/dev/shm"}]
    assert main == {"name": "main", **ENGINE, "volumeMounts": memory}


def test_the_engine_keeps_its_own_probes() -> None:
    own = {"grpc": {"port": 50051}}
    main, *_ = pod(engine({**ENGINE, "readinessProbe": own, "livenessProbe": None}))["containers"]
    assert {name: each for name, each in main.items() if name.endswith("Probe")} == {"readinessProbe": own}


def test_the_authors_fields_of_the_runtime_win() -> None:
    own = {"exec": {"command": ["true"]}}
    written = {"env": [{"name": "NATS_SERVER", "value": "nats://mine"}], "startupProbe": own, "command": ["sidecar"]}
    container = runtime_of(engine(runtime=written))
    assert (variables(container)["NATS_SERVER"], container["startupProbe"]) == ("nats://mine", own)
    assert container["command"] == ["sidecar"]


def test_variables_of_a_graph_reach_both_containers() -> None:
    single, env = engine(), [{"name": "OWN", "value": "graph"}, {"name": "BOTH", "value": "1"}]
    result = pod(single, env=env)
    of_runtime, of_main = (variables(result[part][0]) for part in ("initContainers", "containers"))
    assert (of_main["OWN"], of_runtime["OWN"], of_main["BOTH"], of_runtime["BOTH"]) == ("engine", "graph", "1", "1")


def test_other_init_containers_and_their_order_stay() -> None:
    setup = {"name": "setup", "image": "busybox:1"}
    first, second = pod(engine(before=[setup]))["initContainers"]
    assert (first, second["name"]) == ({**setup, "resources": {}}, "runtime")


def test_the_runtime_registers_with_its_container_name_if_containers_register() -> None:
    container = runtime_of(engine(annotations={"nvidia.com/dynamo-kube-discovery-mode": "container"}))
    assert variables(container)["CONTAINER_NAME"] == "runtime"


def test_the_runtime_reads_the_policy_of_kv_caches() -> None:
    policy = {"labelKey": "topology.kubernetes.io/zone", "domain": "zone", "enforcement": "required"}
    result = pod(engine(), experimental={"kvTransferPolicy": policy})
    (runtime,), (main,) = result["initContainers"], result["containers"]
    assert variables(runtime)["DYN_KV_TRANSFER_DOMAIN"] == "zone"
    mounted = [[each["name"] for each in container.get("volumeMounts", ())] for container in (runtime, main)]
    assert mounted == [["topology-labels"], ["shared-memory"]]
    assert "DYN_KV_TRANSFER_DOMAIN" not in variables(main)


def test_the_compilation_cache_belongs_to_the_engine() -> None:
    result = pod(engine(compilationCache={"pvcName": "cache"}), backendFramework="vllm")
    (main,), (runtime,) = result["containers"], result["initContainers"]
    assert variables(main)["VLLM_CACHE_ROOT"] == "/root/.cache/vllm"
    assert "volumeMounts" not in runtime


def test_a_frontend_sidecar_may_be_there_as_well() -> None:
    front = {"name": "front", "image": "frontend:1.6.0"}
    main, sidecar = pod(engine(sidecars=[front], frontendSidecar="front"), INFRASTRUCTURE)["containers"]
    assert sidecar["readinessProbe"]["httpGet"]["path"] == "/health"
    assert variables(sidecar)["NATS_SERVER"] == "nats://n:4222"
    assert "NATS_SERVER" not in variables(main)


def test_an_engine_with_elastic_experts_starts_as_written() -> None:
    main = {**ENGINE, "command": ["vllm"], "args": ["--enable-elastic-ep", "--data-parallel-backend", "ray"]}
    container, *_ = pod(engine(main, runtimeVersionOverride="1.6.0"))["containers"]
    assert (container["command"], container["args"]) == (main["command"], main["args"])


def test_grove_runs_the_same_pods() -> None:
    (made,) = of_kind(graph_children(graph(engine()), replace(INFRASTRUCTURE, grove=True)), "PodCliqueSet")
    (clique,) = made["spec"]["template"]["cliques"]
    (of_grove,), (other,) = (
        each["initContainers"] for each in (clique["spec"]["podSpec"], pod(engine(), INFRASTRUCTURE))
    )
    assert of_grove.keys() == other.keys()


def test_pull_secrets_of_its_registry_are_added() -> None:
    secrets = PullSecrets({"registry.io": ("pull",)})
    single = engine(runtime={"image": "registry.io/sidecar:1"})
    (dcd,) = of_kind(graph_children(graph(single)), "DynamoComponentDeployment")
    (made,) = of_kind(component_children(dcd, pull_secrets=secrets), "Deployment")
    assert made["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "pull"}]


@pytest.mark.parametrize(
    ("name", "type_", "policy"),
    [("setup", "worker", "Always"), ("runtime", "worker", None), ("runtime", "frontend", "Always")],
    ids=["another name", "it ends", "not a worker"],
)
def test_other_init_containers_change_nothing(name: str, type_: str, policy: str | None) -> None:
    given = {"name": name, "image": "busybox:1", **({"restartPolicy": policy} if policy else {})}
    single = component(type_=type_, pod={"initContainers": [given]})
    result, plain = pod(single), pod(component(type_=type_))
    assert result["initContainers"] == [{**given, "resources": {}}]
    (main,), (expected,) = result["containers"], plain["containers"]
    # Only the generation differs.
    assert {**main, "env": [*variables(main)]} == {**expected, "env": [*variables(expected)]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("multinode", {"nodeCount": 2}),
        ("experimental", {"gpuMemoryService": {"mode": "IntraPod"}}),
        ("experimental", {"checkpoint": {"enabled": True}}),
        ("experimental", {"failover": {"mode": "IntraPod"}}),
    ],
    ids=["nodes", "GPU memory", "checkpoint", "failover"],
)
def test_features_that_change_engines_are_rejected(field: str, value: Any) -> None:
    with pytest.raises(RenderError, match="not allowed with the init container runtime"):
        workloads(graph(engine(**{field: value})), replace(CONFIG, leader_worker_sets=True))


def test_a_runtime_sidecar_in_only_one_role_is_rejected() -> None:
    roles = [{"name": "leader"}, {"name": "worker", "podTemplate": engine()["podTemplate"]}]
    with pytest.raises(RenderError, match="multinode: not allowed with the init container runtime"):
        workloads(graph(component(multinode={"nodeCount": 2}, roles=roles)), replace(CONFIG, leader_worker_sets=True))
