"""Engines that share GPU memory or fail over: rules that the recorded graphs do not cover."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api.objects import KubeObject

from .building import (
    CONFIG,
    component,
    component_children,
    component_deployments,
    graph,
    graph_children,
    of_kind,
    variables,
)

CLAIMING = replace(CONFIG, device_claims=True, leader_worker_sets=True)
GROVE = replace(CLAIMING, grove=True)
WITHIN: KubeObject = {"gpuMemoryService": {}}
WITHIN_FAILOVER: KubeObject = {"gpuMemoryService": {}, "failover": {}}
BETWEEN = {"gpuMemoryService": {"mode": "InterPod"}}
BETWEEN_FAILOVER = {**BETWEEN, "failover": {"mode": "InterPod"}}
EXECUTOR = "nvidia.com/vllm-distributed-executor-backend"


def worker(experimental: KubeObject, *args: str, engine: str = "vllm", gpus: int = 2, **fields: Any) -> KubeObject:
    """A worker with two GPUs; `main` has more fields of its container."""
    command = ["python3", "-m", f"dynamo.{engine}"]
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    main = {"command": command, "args": list(args), "resources": resources, **fields.pop("main", {})}
    return component(main=main, experimental=experimental, **fields)


def pod(single: KubeObject, config: render.RenderConfig = CLAIMING) -> KubeObject:
    """The pod spec of the only component of a graph; on several nodes, of the leader."""
    return pods(single, config)[0]


def pods(single: KubeObject, config: render.RenderConfig = CLAIMING) -> list[KubeObject]:
    (dcd,) = component_deployments(graph(single), config).values()
    children = component_children(dcd, config)
    (workload,) = [*of_kind(children, "Deployment"), *of_kind(children, "LeaderWorkerSet")]
    spec = workload["spec"]
    if "leaderWorkerTemplate" not in spec:
        return [spec["template"]["spec"]]
    return [spec["leaderWorkerTemplate"][name]["spec"] for name in ("leaderTemplate", "workerTemplate")]


def grove_template(single: KubeObject, **observed: Any) -> KubeObject:
    """The template of the PodCliqueSet of a graph with one component."""
    (made,) = of_kind(graph_children(graph(single, backendFramework="vllm"), GROVE, **observed), "PodCliqueSet")
    template: KubeObject = made["spec"]["template"]
    return template


def cliques(single: KubeObject) -> dict[str, KubeObject]:
    return {each["name"]: each for each in grove_template(single)["cliques"]}


def main_of(clique: KubeObject) -> KubeObject:
    container: KubeObject = clique["spec"]["podSpec"]["containers"][0]
    return container


# Within a pod


def test_other_containers_use_the_service_if_the_graph_says_so() -> None:
    asked = {"limits": {"nvidia.com/gpu": "2", "cpu": "1"}, "claims": [{"name": "nic"}]}
    sidecars = [{"name": "saver", "image": "s", "resources": asked}, {"name": "log", "image": "l"}]
    before = copy.deepcopy(sidecars)
    for features in (WITHIN, WITHIN_FAILOVER):
        named = {**features, "gpuMemoryService": {"extraClientContainers": ["main", "saver"]}}
        containers = {each["name"]: each for each in pod(worker(named, sidecars=sidecars))["containers"]}
        saver = containers.pop("saver")
        assert saver["resources"] == {
            "limits": {"cpu": "1"},
            "claims": [{"name": "nic"}, {"name": "intrapod-shared-gpu"}],
        }
        assert variables(saver) == {"GMS_SOCKET_DIR": "/gms-intrapod-control"}
        assert saver["volumeMounts"] == [{"name": "gms-intrapod-control", "mountPath": "/gms-intrapod-control"}]
        plain = {each["name"]: each for each in pod(worker(features, sidecars=sidecars))["containers"]}
        # A variable contains the worker generation, which differs.
        assert {name: each["volumeMounts"] for name, each in containers.items() if name != "log"} == {
            name: each["volumeMounts"] for name, each in plain.items() if name not in ("saver", "log")
        }
        assert containers["log"] == plain["log"]
    assert sidecars == before


def test_a_missing_client_container_is_rejected() -> None:
    with pytest.raises(render.RenderError, match=r"extraClientContainers\[1\]: 'gone' is not a container"):
        pod(worker({"gpuMemoryService": {"extraClientContainers": ["main", "gone"]}}))


def test_gpus_of_every_resource_name_are_claimed_instead_of_counted() -> None:
    asked = {"limits": {"nvidia.com/mig-1g.5gb": "2", "cpu": "4"}, "requests": {"nvidia.com/mig-1g.5gb": "2"}}
    made = pod(worker(WITHIN, main={"resources": asked}))
    claim = {"name": "intrapod-shared-gpu"}
    assert made["containers"][0]["resources"] == {"limits": {"cpu": "4"}, "claims": [claim]}
    assert made["resourceClaims"] == [{**claim, "resourceClaimTemplateName": "graph-worker-gpu"}]


def test_claims_and_tolerations_of_the_user_stay() -> None:
    taint = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    own = {"name": "nic", "resourceClaimTemplateName": "nics"}
    resources = {"limits": {"nvidia.com/gpu": 2}, "claims": [{"name": "nic"}]}
    made = pod(worker(WITHIN, main={"resources": resources}, pod={"tolerations": [taint], "resourceClaims": [own]}))
    assert made["tolerations"] == [taint]
    assert [each["name"] for each in made["resourceClaims"]] == ["nic", "intrapod-shared-gpu"]
    assert [each["name"] for each in made["containers"][0]["resources"]["claims"]] == ["nic", "intrapod-shared-gpu"]


def test_the_service_starts_after_the_users_init_containers() -> None:
    made = pod(worker(WITHIN, pod={"initContainers": [{"name": "prepare", "image": "i"}]}))
    assert [each["name"] for each in made["initContainers"]] == ["prepare", "gms-server"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"initContainers": [{"name": "gms-server", "image": "i"}]},
            "initContainers: 'gms-server' is the name of .* container",
        ),
        (
            {"volumes": [{"name": "gms-intrapod-control", "emptyDir": {}}]},
            "volumes: 'gms-intrapod-control' is the name of .* volume",
        ),
        (
            {"resourceClaims": [{"name": "intrapod-shared-gpu", "resourceClaimName": "c"}]},
            "resourceClaims: 'intrapod-shared-gpu' is the name of .*; rename your claim",
        ),
    ],
)
def test_names_of_the_services_parts_are_reserved(fields, message) -> None:
    with pytest.raises(render.RenderError, match=f"component Worker: podTemplate.spec.{message}"):
        pod(worker(WITHIN, pod=fields))


def test_the_service_runs_with_the_security_context_of_its_engine() -> None:
    confined = {"allowPrivilegeEscalation": False, "runAsUser": 7}
    (server,) = pod(worker(WITHIN, main={"securityContext": confined}))["initContainers"]
    assert server["securityContext"] == confined


@pytest.mark.parametrize("grove", [False, True])
def test_the_graph_creates_the_claim_template(grove) -> None:
    single = worker({"gpuMemoryService": {"deviceClassName": "mig.nvidia.com"}}, gpus=4)
    (made,) = of_kind(graph_children(graph(single), replace(CLAIMING, grove=grove)), "ResourceClaimTemplate")
    (request,) = made["spec"]["spec"]["devices"]["requests"]
    assert made["metadata"]["name"] == "graph-worker-gpu"
    assert made["metadata"]["ownerReferences"][0]["kind"] == "DynamoGraphDeployment"
    assert request["exactly"] == {"deviceClassName": "mig.nvidia.com", "allocationMode": "ExactCount", "count": 4}


def test_a_standalone_component_creates_the_claim_template() -> None:
    (dcd,) = component_deployments(graph(worker(WITHIN)), CLAIMING).values()
    of_graph = component_children(dcd, CLAIMING)
    alone = {**dcd, "metadata": {"name": "alone", "namespace": "ns"}}
    (made,) = of_kind(component_children(alone, CLAIMING), "ResourceClaimTemplate")
    assert made["metadata"]["name"] == "alone-worker-gpu"
    assert made["metadata"]["ownerReferences"][0]["kind"] == "DynamoComponentDeployment"
    assert of_kind(of_graph, "ResourceClaimTemplate") == []


def test_every_node_of_a_group_has_the_service() -> None:
    single = worker(WITHIN, "-tp", "4", engine="sglang", multinode={"nodeCount": 2})
    for each in pods(single):
        assert "gms-server" in [container["name"] for container in each["initContainers"]]
        assert each["resourceClaims"][0]["resourceClaimTemplateName"] == "graph-worker-gpu"


# Failover within a pod


def engines(made: KubeObject) -> list[KubeObject]:
    return [each for each in made["containers"] if each["name"].startswith("engine-")]


def test_engines_replace_main_before_the_other_containers() -> None:
    made = pod(worker(WITHIN_FAILOVER, sidecars=[{"name": "log", "image": "log"}]))
    assert [each["name"] for each in made["containers"]] == ["engine-0", "engine-1", "log"]


def test_variables_that_differ_between_engines_override_the_users() -> None:
    own = [
        {"name": name, "value": "1"} for name in ("ENGINE_ID", "DYN_SYSTEM_PORT", "DYN_HEALTH_CHECK_ENABLED", "MINE")
    ]
    for number, engine in enumerate(engines(pod(worker(WITHIN_FAILOVER, main={"env": own})))):
        names = [each["name"] for each in engine["env"]]
        assert len(names) == len(set(names))
        values = variables(engine)
        assert (values["ENGINE_ID"], values["DYN_SYSTEM_PORT"], values["MINE"]) == (
            str(number),
            str(9090 + number),
            "1",
        )
        assert "DYN_HEALTH_CHECK_ENABLED" not in values


def test_http_probes_get_the_port_of_each_engine_and_others_stay() -> None:
    runs = {"exec": {"command": ["true"]}}
    first, second = engines(pod(worker(WITHIN_FAILOVER, main={"livenessProbe": runs})))
    assert first["livenessProbe"] == second["livenessProbe"] == runs
    assert [each["readinessProbe"]["httpGet"]["port"] for each in (first, second)] == ["system-0", "system-1"]


@pytest.mark.parametrize(
    ("main", "command", "args"),
    [
        ({"args": ["--master-port", "30000"]}, ["python3", "-m", "dynamo.vllm"], ["--master-port", "30100"]),
        ({"args": ["--master-port=30000"]}, ["python3", "-m", "dynamo.vllm"], ["--master-port=30100"]),
        (
            {"command": ["sh", "-c"], "args": ["python3 -m dynamo.vllm --master-port 30000 | tee log"]},
            ["sh", "-c"],
            ["python3 -m dynamo.vllm --master-port 30100 | tee log"],
        ),
        (
            {"command": ["sh", "-c"], "args": ["python3 -m dynamo.vllm --model x"]},
            ["sh", "-c"],
            ["python3 -m dynamo.vllm --master-port 29600 --model x"],
        ),
    ],
)
def test_the_processes_of_the_second_engine_use_other_ports(main, command, args) -> None:
    first, second = engines(pod(worker(WITHIN_FAILOVER, main=main)))
    assert first["args"] == main["args"]
    assert (second["command"], second["args"]) == (command, args)


def test_engines_on_several_nodes_find_those_of_the_same_number() -> None:
    leader, follower = pods(worker(WITHIN_FAILOVER, "-tp", "4", multinode={"nodeCount": 2}))
    for made in (leader, follower):
        first, second = engines(made)
        assert (variables(first)["NNODES"], variables(second)["NNODES"]) == ("2", "2")
        assert "--master-port 29500" in " ".join(first["args"])
        assert "--master-port 29600" in " ".join(second["args"])
    assert [each["name"] for each in follower["initContainers"]] == ["wait-for-leader-mp", "gms-server"]


def test_data_parallel_engines_coordinate_separately() -> None:
    first, second = engines(pod(worker(WITHIN_FAILOVER, "-dp", "4", multinode={"nodeCount": 2})))
    assert "--data-parallel-rpc-port 13445" in " ".join(first["args"])
    assert "--data-parallel-rpc-port 13545" in " ".join(second["args"])


@pytest.mark.parametrize(
    ("args", "advice"), [(("-tp", "4"), f"{EXECUTOR} to mp"), (("--enable-elastic-ep", "-dp", "4"), "remove failover")]
)
def test_only_one_engine_of_a_pod_can_start_ray(args, advice) -> None:
    single = worker(WITHIN_FAILOVER, *args, multinode={"nodeCount": 2}, annotations={EXECUTOR: "ray"})
    with pytest.raises(render.RenderError, match=rf"experimental\.failover: .* would start Ray.*{advice}"):
        pods(single)


# Between pods


@pytest.mark.parametrize(("asked", "waits"), [(BETWEEN, False), (BETWEEN_FAILOVER, True)])
def test_only_engines_that_fail_over_between_pods_wait_for_a_failure(asked, waits) -> None:
    for clique in cliques(worker(asked, multinode={"nodeCount": 2})).values():
        assert ("DYN_VLLM_GMS_SHADOW_MODE" in variables(main_of(clique))) is waits, clique["name"]


def test_memory_between_pods_without_failover() -> None:
    made = grove_template(worker(BETWEEN, replicas=3))
    server, engine = made["cliques"]
    assert [each["name"] for each in made["cliques"]] == ["worker-gms-0", "worker"]
    assert (engine["spec"]["replicas"], engine["spec"]["minAvailable"]) == (1, 1)
    assert engine["spec"]["podSpec"]["restartPolicy"] == "Always"
    assert "nvidia.com/dynamo-failover-engine-group-member" not in {**engine["labels"], **server["labels"]}
    (group,) = made["podCliqueScalingGroups"]
    assert (group["name"], group["replicas"]) == ("worker", 3)


def test_memory_of_every_rank() -> None:
    made = grove_template(worker(BETWEEN_FAILOVER, "-tp", "6", multinode={"nodeCount": 3}))
    names = [each["name"] for each in made["cliques"]]
    assert names == ["worker-gms-0", "worker-ldr", "worker-gms-1", "worker-wkr-1", "worker-gms-2", "worker-wkr-2"]
    results = {each["name"]: each["spec"] for each in made["cliques"]}
    assert {name: spec["replicas"] for name, spec in results.items()} == dict(zip(names, [1, 2] * 3, strict=True))
    assert {spec["minAvailable"] for spec in results.values()} == {1}
    assert results["worker-wkr-2"]["startsAfter"] == ["worker-gms-2"]
    assert made["cliqueStartupType"] == "CliqueStartupTypeExplicit"
    assert [each["name"] for each in made["resourceClaimTemplates"]] == [f"worker-gpu-rank-{i}" for i in range(3)]
    (group,) = made["podCliqueScalingGroups"]
    assert [each["filter"]["childCliqueNames"] for each in group["resourceSharing"]] == [
        ["worker-gms-0", "worker-ldr"],
        ["worker-gms-1", "worker-wkr-1"],
        ["worker-gms-2", "worker-wkr-2"],
    ]


def test_engines_of_one_index_form_one_engine_over_all_ranks() -> None:
    result = cliques(worker(BETWEEN_FAILOVER, "-tp", "4", multinode={"nodeCount": 2}))
    host = "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-worker-ldr-$(GROVE_PCLQ_POD_INDEX).$(GROVE_HEADLESS_SERVICE)"
    for name, rank in (("worker-ldr", "0"), ("worker-wkr-1", "1")):
        args = main_of(result[name])["args"]
        assert args[:4] == ["-tp", "4", "--load-format", "gms"]
        assert args[args.index("--master-addr") + 1] == host
        assert args[args.index("--node-rank") + 1] == rank
        (mount,) = [each for each in main_of(result[name])["volumeMounts"] if each["name"] == "gms-shared"]
        assert mount["subPathExpr"].endswith(f"/rank-{rank}")
    waiting = result["worker-wkr-1"]["spec"]["podSpec"]["initContainers"][0]
    assert "worker-ldr-${GROVE_PCLQ_POD_INDEX}." in waiting["command"][-1]


def test_the_server_waits_for_the_sockets_of_its_gpus_and_runs_nothing_else() -> None:
    own: KubeObject = {
        "sidecars": [{"name": "log", "image": "log"}],
        "pod": {"initContainers": [{"name": "prepare", "image": "i"}]},
    }
    result = cliques(worker(BETWEEN_FAILOVER, gpus=4, **own))
    server, engine = (result[name]["spec"]["podSpec"] for name in ("worker-gms-0", "worker"))
    assert server["containers"][0]["startupProbe"]["exec"]["command"][-1].endswith("-ge 8")
    assert [each["name"] for each in server["containers"]] == ["main"]
    assert [each["name"] for each in server["initContainers"]] == ["fix-gms-perms"]
    assert [each["name"] for each in engine["containers"]] == ["main", "log"]
    assert [each["name"] for each in engine["initContainers"]] == ["prepare", "fix-gms-perms"]
    assert server["restartPolicy"] == "Always"


def test_a_load_format_of_the_user_is_kept() -> None:
    result = cliques(worker(BETWEEN_FAILOVER, "--load-format=auto"))
    assert main_of(result["worker"])["args"] == ["--load-format=auto"]


def test_existing_cliques_and_claims_keep_their_order() -> None:
    parts = [worker(BETWEEN, name=name) for name in ("a", "b")]
    present = ("b-gms-0", "b", "a-gms-0", "a")
    children = graph_children(graph(*parts, backendFramework="vllm"), GROVE, cliques=present)
    (made,) = of_kind(children, "PodCliqueSet")
    template = made["spec"]["template"]
    assert [each["name"] for each in template["cliques"]] == list(present)
    assert [each["name"] for each in template["resourceClaimTemplates"]] == ["b-gpu-rank-0", "a-gpu-rank-0"]


def test_the_topology_belongs_to_the_group() -> None:
    made = grove_template(worker(BETWEEN, topologyConstraint={"packDomain": "host"}))
    assert made["podCliqueScalingGroups"][0]["topologyConstraint"] == {"packDomain": "host"}
    assert all("topologyConstraint" not in each for each in made["cliques"])


# Combinations that cannot run are reported


@pytest.mark.parametrize(
    ("single", "config", "message"),
    [
        (worker(WITHIN), CONFIG, r"gpuMemoryService: GPUs cannot be shared here: .* resource\.k8s\.io/v1"),
        (component("Front", "frontend", experimental=WITHIN), CLAIMING, "gpuMemoryService: only a worker"),
        (worker(BETWEEN), CLAIMING, r"gpuMemoryService\.mode: .* only where Grove runs them; install Grove"),
        (worker(BETWEEN, engine="sglang"), GROVE, r"gpuMemoryService\.mode: the engine sglang cannot share GPU memory"),
        (worker(WITHIN_FAILOVER, engine="sglang"), CLAIMING, "failover: the engine sglang cannot fail over; use vLLM"),
        (
            worker(WITHIN_FAILOVER, main={"command": ["serve"]}),
            CLAIMING,
            "failover: an engine that the command line does not name cannot fail over",
        ),
        (worker({"failover": {}}), CLAIMING, "failover: .* set gpuMemoryService with mode IntraPod"),
        (worker({**WITHIN, "failover": {"mode": "InterPod"}}), GROVE, "failover: .* with mode InterPod"),
    ],
)
def test_unsupported_combinations_are_rejected(single, config, message) -> None:
    with pytest.raises(render.RenderError, match=rf"component (Worker|Front): experimental\.{message}"):
        graph_children(graph(single), config)


def test_a_graph_that_opts_out_of_grove_shares_no_memory_between_pods() -> None:
    off = graph(worker(BETWEEN), annotations={"nvidia.com/enable-grove": "false"})
    with pytest.raises(render.RenderError, match="only where Grove runs them"):
        graph_children(off, GROVE)


def test_without_gpus_no_claim_is_rendered() -> None:
    with pytest.raises(
        render.RenderError, match=r"resources\.limits: requests no GPU, and the platform claims as many"
    ):
        graph_children(graph(worker(WITHIN, main={"resources": {}})), CLAIMING)


def test_a_set_that_the_api_server_would_refuse_is_not_rendered() -> None:
    """A template of a megabyte on 64 nodes became a hundred, and several such graphs used up the pod-builder's memory."""
    single = worker(BETWEEN, "x" * 1_000_000, multinode={"nodeCount": 64})
    message = "component Worker: podTemplate: the PodCliqueSet .* 128 cliques .* more than 3 MiB, .* refuses; make"
    with pytest.raises(render.RenderError, match=message):
        grove_template(single)
    assert len(grove_template(worker(BETWEEN, "x" * 10_000, multinode={"nodeCount": 64}))["cliques"]) == 128
