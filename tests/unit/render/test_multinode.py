"""Replicas over several nodes: the arguments of leaders and workers of each engine."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_pod_builder.configuration import render_config
from dynamo_pod_builder.render.config import NEW_COMPONENT, RoleClaims
from dynamo_pod_builder.render.context import context_of
from dynamo_pod_builder.render.pod import placement, pod
from dynamo_shared.api import gpus
from dynamo_shared.api.device_claims import ClaimedGpus, NotCounted, UncountedClaim
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1 import parse_component
from dynamo_shared.runtime.settings import Settings

from tests.unit.render import building

CONFIG = render.RenderConfig(leader_worker_sets=True, ssh_secret="mpi-keys", operator_version="1.2.0")
ORIGIN = "nvidia.com/dynamo-operator-origin-version"
EXECUTOR = "nvidia.com/vllm-distributed-executor-backend"


def component(engine: str, args: list[str], *, gpu: int = 4, nodes: int = 2, **changed: Any) -> KubeObject:
    main = {
        "name": "main",
        "image": "engine:1",
        "command": ["python3", "-m", f"dynamo.{engine}"],
        "args": args,
        "resources": {"limits": {"nvidia.com/gpu": str(gpu)}} if gpu else {},
        **changed.pop("container", {}),
    }
    of_pods = {"annotations": changed.pop("annotations", {ORIGIN: "1.2.0"})}
    template = {"metadata": of_pods, "spec": {"containers": [main]}}
    spec = {"name": "Worker", "type": "worker", "multinode": {"nodeCount": nodes}, "podTemplate": template, **changed}
    of_graph = {"nvidia.com/dynamo-graph-deployment-name": "g"}
    metadata = {"name": "g-worker", "namespace": "n", "uid": "u", "labels": of_graph}
    return {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoComponentDeployment", "metadata": metadata, "spec": spec}


def pods(
    obj: KubeObject,
    around: render.ObservedComponent = NEW_COMPONENT,
    *,
    grove: bool = False,
    config: render.RenderConfig = CONFIG,
) -> tuple[KubeObject, KubeObject]:
    """The pod specs of leader and worker."""
    context = context_of(parse_component(obj), config, around)
    nodes = context.nodes
    group = placement.grove(context.component, nodes) if grove else placement.leader_worker_set(nodes)
    return (
        pod.pod_spec(context.placed(placement.leader(group, nodes))),
        pod.pod_spec(context.placed(placement.worker(group, nodes))),
    )


def mains(
    obj: KubeObject, around: render.ObservedComponent = NEW_COMPONENT, **options: Any
) -> tuple[KubeObject, KubeObject]:
    leader, worker = pods(obj, around, **options)
    return leader["containers"][0], worker["containers"][0]


def probes(container: KubeObject) -> set[str]:
    return {name for name in container if name.endswith("Probe")}


def test_vllm_by_processes() -> None:
    leader, worker = mains(component("vllm", ["-tp", "8"]))
    shared = ["--distributed-executor-backend", "mp", "--nnodes", "2", "--master-addr", "$(LWS_LEADER_ADDRESS)"]
    assert leader["args"] == ["-tp", "8", *shared, "--master-port", "29500", "--node-rank", "0"]
    assert worker["args"] == [
        *["-tp", "8", *shared, "--master-port", "29500", "--node-rank", "$(LWS_WORKER_INDEX)", "--headless"]
    ]
    assert probes(leader) == {"livenessProbe", "readinessProbe", "startupProbe"}
    assert probes(worker) == set()


def test_a_vllm_worker_waits_for_its_leader() -> None:
    leader, worker = pods(component("vllm", ["-tp", "8"]))
    assert "initContainers" not in leader
    (waits,) = worker["initContainers"]
    assert waits["image"] == "engine:1"
    assert 'LEADER_HOST="${LWS_LEADER_ADDRESS}"' in waits["command"][-1]
    assert {"name": "wait-leader-script", "configMap": {"name": "g-wait-leader-script"}} in worker["volumes"]


RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsUser": 7,
    "runAsNonRoot": True,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (RESTRICTED, RESTRICTED),
        ({"capabilities": {"add": ["IPC_LOCK"]}, "privileged": True}, None),
        (
            {"capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}, "runAsUser": 7},
            {"capabilities": {"drop": ["ALL"]}, "runAsUser": 7},
        ),
        ({}, None),
        (None, None),
    ],
)
def test_the_waiting_container_is_confined_like_the_engine_and_has_none_of_its_rights(given, expected) -> None:
    worker = pods(component("vllm", ["-tp", "8"], container={"securityContext": given}))[1]
    assert worker["initContainers"][0].get("securityContext") == expected


@pytest.mark.parametrize("args", [["-tp", "2", "-dp", "4"], ["--enable-elastic-ep", "-dp", "8"], ["-tp", "4"]])
@pytest.mark.parametrize("grove", [True, False])
def test_a_vllm_worker_does_not_wait_for_a_port_that_its_leader_never_opens(args, grove) -> None:
    _, worker = pods(component("vllm", args), grove=grove)
    assert "initContainers" not in worker


@pytest.mark.parametrize(
    ("flags", "waits"),
    [
        ("", ['"29500"']),
        ("--master-port 1234", ['"1234"']),
        ("--master-port $PORT", []),
        ("--distributed-executor-backend ray", []),
    ],
)
@pytest.mark.parametrize("grove", [True, False])
def test_a_vllm_worker_waits_at_the_port_of_its_authors_script(flags, waits, grove) -> None:
    script = {"command": ["sh", "-c"], "args": [f"python3 -m dynamo.vllm -tp 8 {flags}"]}
    _, worker = pods(component("vllm", [], container=script), grove=grove)
    at = [each["command"][-1].partition("LEADER_PORT=")[2].split()[0] for each in worker.get("initContainers", ())]
    assert at == waits


@pytest.mark.parametrize(
    "annotations", [{}, {ORIGIN: "0.9.0"}, {ORIGIN: "unknown"}, {ORIGIN: "1.2.0", EXECUTOR: "Ray"}]
)
def test_vllm_by_ray_as_in_older_graphs(annotations) -> None:
    leader, worker = mains(component("vllm", ["-tp", "8", "--x", "a b"], annotations=annotations))
    assert leader["command"] == worker["command"] == ["/bin/sh", "-c"]
    assert leader["args"] == [
        'ray start --head --port=6379 && python3 -m dynamo.vllm -tp 8 --x "a b" --distributed-executor-backend ray'
    ]
    assert worker["args"] == ["ray start --address=$(LWS_LEADER_ADDRESS):6379 --block"]


@pytest.mark.parametrize(
    ("version", "args", "waits"),
    [
        ("1.6.0", ["-tp", "8"], ["wait-for-leader-ray"]),
        ("1.5.9", ["-tp", "8"], []),
        # These wait for the engine itself.
        ("1.6.0", ["--enable-elastic-ep", "-dp", "8"], []),
    ],
)
def test_vllm_workers_wait_for_the_ray_head_from_1_6_on(version, args, waits) -> None:
    obj = component("vllm", args, annotations={ORIGIN: "1.2.0", EXECUTOR: "ray"}, runtimeVersionOverride=version)
    leader, worker = pods(obj)
    assert "initContainers" not in leader
    assert [each["name"] for each in worker.get("initContainers", ())] == waits
    for each in worker.get("initContainers", ()):
        assert 'LEADER_HOST="${LWS_LEADER_ADDRESS}" LEADER_PORT="6379"' in each["command"][-1]


def test_vllm_by_ray_from_a_script_gives_the_flag_to_the_engine_and_not_to_the_shell() -> None:
    script = {"command": ["/bin/sh", "-c"], "args": ["cd /x && python3 -m dynamo.vllm -tp 8"]}
    leader, _ = mains(component("vllm", [], container=script, annotations={EXECUTOR: "ray"}))
    assert leader["args"] == [
        "ray start --head --port=6379 && cd /x && python3 -m dynamo.vllm --distributed-executor-backend ray -tp 8"
    ]


@pytest.mark.parametrize("args", [["-tp", "8"], ["--enable-elastic-ep", "-dp", "8"]])
def test_a_script_continues_in_its_authors_shell_if_ray_starts_first(args) -> None:
    script = f"source /venv/bin/activate; python3 -m dynamo.vllm {' '.join(args)}"
    own = {"command": ["bash", "-lc", script], "args": ["name"]}
    leader, worker = mains(component("vllm", [], container=own, annotations={EXECUTOR: "ray"}))
    assert leader["command"][:2] == ["bash", "-lc"]
    assert leader["command"][2].startswith("ray start --head --port=6379 ")
    assert " && source /venv/bin/activate; python3 -m dynamo.vllm" in leader["command"][2]
    assert leader["args"] == ["name"]
    assert worker["command"] == ["/bin/sh", "-c"]


def test_vllm_data_parallel() -> None:
    leader, worker = mains(component("vllm", ["-tp", "2", "-dp", "4"]))
    assert leader["args"][4:] == [
        *["--data-parallel-hybrid-lb", "--data-parallel-size-local", "2", "--data-parallel-start-rank", "0"],
        *["--data-parallel-address", "$(LWS_LEADER_ADDRESS)", "--data-parallel-rpc-port", "13445"],
    ]
    assert worker["command"] == ["sh", "-c"]
    assert "--data-parallel-start-rank $(( 2 * LWS_WORKER_INDEX ))" in worker["args"][0]


def test_vllm_workers_with_elastic_experts_join_when_the_leader_is_alive() -> None:
    leader, worker = mains(component("vllm", ["--enable-elastic-ep", "-dp", "8"]))
    assert leader["args"][0].endswith("&& python3 -m dynamo.vllm --enable-elastic-ep -dp 8")
    assert "http://$(LWS_LEADER_ADDRESS):9090/live" in worker["args"][0]
    assert worker["args"][0].endswith("&& ray start --address=$(LWS_LEADER_ADDRESS):6379 --block")


def test_vllm_that_fits_on_one_node_is_left_alone() -> None:
    leader, worker = mains(component("vllm", ["-tp", "4"]))
    assert leader["args"] == worker["args"] == ["-tp", "4"]


OWN_LAUNCHES = [
    {"command": ["./start", "--tensor-parallel-size"], "args": ["8"]},
    {"command": ["bash", "start.sh"], "args": []},
    {"command": ["/bin/sh", "-c"], "args": ["exec serve --rank $DYNAMO_RANK"]},
]


@pytest.mark.parametrize("own", OWN_LAUNCHES)
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("grove", [True, False])
def test_a_command_without_a_place_for_flags_runs_as_written_with_its_rank_in_variables(
    engine: str, own: KubeObject, grove: bool
) -> None:
    leader, worker = pods(component(engine, [], gpu=0, container=own, backendFramework=engine), grove=grove)
    assert "initContainers" not in worker
    for each in (leader, worker):
        (main,) = each["containers"]
        assert {field: main.get(field) for field in own} == own
        assert {"DYNAMO_RANK", "DYNAMO_LEADER_ADDRESS"} <= set(building.variables(main))
    assert probes(leader["containers"][0]) == {"livenessProbe", "readinessProbe", "startupProbe"}
    assert probes(worker["containers"][0]) == set()


def test_the_authors_rank_and_address_are_kept() -> None:
    own = {"command": ["./start"], "args": [], "env": [{"name": "DYNAMO_RANK", "value": "7"}]}
    leader, _ = mains(component("sglang", [], container=own, backendFramework="sglang"))
    assert building.variables(leader)["DYNAMO_RANK"] == "7"


@pytest.mark.parametrize(
    ("own", "launched"),
    [
        *zip(
            OWN_LAUNCHES,
            ["./start --tensor-parallel-size 8", "bash start.sh", "exec serve --rank $DYNAMO_RANK"],
            strict=True,
        ),
        ({"command": ["bash", "-ec"], "args": ["cd /x && ./start"]}, 'bash -ec "cd /x && ./start"'),
        # As in the reference, although a shell starts only Python with this line.
        (
            {"command": ["sh", "-c"], "args": ["python3", "-m", "dynamo.trtllm", "--model", "a b"]},
            'python3 -m dynamo.trtllm --model "a b"',
        ),
        # The script gets its arguments from its shell.
        (
            {"command": ["bash", "-c"], "args": ['cd /x; python3 -m dynamo.trtllm "$@"', "--", "--model", "a b"]},
            'bash -c "cd /x; python3 -m dynamo.trtllm \\"\\$@\\"" -- --model "a b"',
        ),
        (
            {"command": ["sh", "-c"], "args": ["python3 -m dynamo.trtllm ${1} --x $HOME", "sh", "--x"]},
            'sh -c "python3 -m dynamo.trtllm \\${1} --x \\$HOME" sh --x',
        ),
        ({"command": ["sh", "-c", "python3 -m dynamo.trtllm $X"], "args": ["name"]}, "python3 -m dynamo.trtllm $X"),
    ],
)
def test_mpirun_starts_any_program(own: KubeObject, launched: str) -> None:
    leader, _ = mains(component("trtllm", [], container=own, backendFramework="trtllm"))
    assert leader["args"][0].endswith(f"bash -c 'trtllm-llmapi-launch {launched}'")


@pytest.mark.parametrize(
    "script",
    [
        "@python3 -m dynamo.trtllm --x 1",
        "@exec python3 -m dynamo.trtllm",
        "\n@python3 -m dynamo.trtllm",
        "cd /x && exec @/venv/bin/python3 -m dynamo.trtllm --x 1 | tee log",
        "set -e\nexport A=1\n@python3 \\\n  -m dynamo.trtllm\n",
        "A=1 @python3 -m dynamo.trtllm",
    ],
)
def test_the_launcher_of_trtllm_starts_the_engine_and_not_the_script_before_it(script: str) -> None:
    """The marker shows its place in the script."""
    own = {"command": ["/bin/sh", "-c"], "args": [script.replace("@", "")]}
    leader, _ = mains(component("trtllm", [], container=own))
    assert leader["args"][0].endswith(f"bash -c '{script.replace('@', 'trtllm-llmapi-launch ')}'")


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_a_shell_without_a_command_is_rejected(engine: str) -> None:
    with pytest.raises(render.RenderError, match="cannot add the flags"):
        pods(component(engine, [], container={"command": [], "args": []}, backendFramework=engine))


@pytest.mark.parametrize(("stated", "passed"), [({}, False), ({"runtimeVersionOverride": "1.5.0"}, True)])
def test_trtllm_passes_the_variables_of_its_compilers_from_1_5_on(stated, passed) -> None:
    leader, _ = mains(component("trtllm", [], **stated))
    assert all((f"-x {name} " in leader["args"][0]) is passed for name in ("CPATH", "TRITON_PTXAS_PATH"))


@pytest.mark.parametrize("engine", ["vllm", "trtllm"])
def test_without_gpus_the_layout_is_unknown(engine) -> None:
    with pytest.raises(render.RenderError, match=r"resources\.limits: requests no GPU"):
        pods(component(engine, [], gpu=0))


def claiming(engine: str, args: list[str]) -> KubeObject:
    obj = component(engine, args, gpu=0, container={"resources": {"claims": [{"name": "gpus"}]}})
    obj["spec"]["podTemplate"]["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "four"}]
    return obj


@pytest.mark.parametrize("grove", [False, True])
def test_claimed_gpus_count_like_those_of_the_container(grove: bool) -> None:
    around = replace(NEW_COMPONENT, claimed=RoleClaims(ClaimedGpus(own=4), ClaimedGpus(own=4)))
    for engine, args in (("vllm", ["-tp", "8"]), ("trtllm", [])):
        counted = mains(component(engine, args), grove=grove)
        claimed = mains(claiming(engine, args), around, grove=grove)
        assert [each["args"] for each in claimed] == [each["args"] for each in counted]


def test_the_gpus_of_the_container_have_precedence_over_claims() -> None:
    around = replace(NEW_COMPONENT, claimed=RoleClaims(ClaimedGpus(own=8)))
    assert mains(component("trtllm", []), around)[0]["args"] == mains(component("trtllm", []))[0]["args"]


@pytest.mark.parametrize("why", NotCounted)
@pytest.mark.parametrize("engine", ["vllm", "trtllm"])
def test_claims_with_unknown_gpus_are_named(engine: str, why: NotCounted) -> None:
    unknown = UncountedClaim("ResourceClaimTemplate", "four", why)
    around = replace(NEW_COMPONENT, claimed=RoleClaims(ClaimedGpus(unknown=(unknown,))))
    with pytest.raises(render.RenderError, match=rf"resources\.claims: ResourceClaimTemplate four {why}"):
        pods(claiming(engine, []), around)


def test_claims_without_gpus_are_named() -> None:
    with pytest.raises(render.RenderError, match=r"resources\.claims: requests no GPU"):
        pods(claiming("vllm", []))


def test_sglang_under_grove_computes_its_rank_in_a_shell() -> None:
    leader, worker = mains(component("sglang", ["--tp", "8"]), grove=True)
    host = "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-worker-ldr-0.$(GROVE_HEADLESS_SERVICE)"
    assert leader["args"] == [*["--tp", "8", "--dist-init-addr", f"{host}:29500", "--nnodes", "2", "--node-rank", "0"]]
    assert worker["args"] == [
        f"exec python3 -m dynamo.sglang --tp 8 --dist-init-addr {host}:29500 --nnodes 2 "
        "--node-rank $((GROVE_PCLQ_POD_INDEX + 1))"
    ]


def test_trtllm_runs_mpi_over_ssh() -> None:
    leader, worker = pods(component("trtllm", ["--x", "it's"], nodes=3))
    (script,) = leader["containers"][0]["args"]
    assert "-n 12 -H $(LWS_LEADER_ADDRESS),$(echo" in script
    assert script.endswith("""bash -c 'trtllm-llmapi-launch python3 -m dynamo.trtllm --x "it'"'"'s"'""")
    assert "/usr/sbin/sshd -D" in worker["containers"][0]["args"][0]
    assert probes(worker["containers"][0]) == {"readinessProbe"}
    keys = {"name": "mpi-keys", "secret": {"secretName": "mpi-keys", "defaultMode": 0o644}}
    assert keys in leader["volumes"]
    assert keys in worker["volumes"]


@pytest.mark.parametrize(("engine", "needed"), [("trtllm", True), ("vllm", False)])
@pytest.mark.parametrize("grove", [False, True], ids=["component deployments", "Grove"])
def test_objects_whose_pods_mount_the_ssh_keys_need_them(engine: str, needed: bool, grove: bool) -> None:
    graph = building.graph(component(engine, [], annotations={})["spec"])
    children = building.graph_children(graph, replace(CONFIG, grove=grove))
    assert any(render.needs_ssh_keys(each, "mpi-keys") for each in children) == needed


def test_an_engine_on_one_node_needs_no_ssh_keys() -> None:
    (child,) = building.component_deployments(building.graph(building.component("One"))).values()
    assert not render.needs_ssh_keys({**child, "spec": {**child["spec"], "backendFramework": "trtllm"}}, "mpi-keys")


@pytest.mark.parametrize(("engine", "needed"), [("trtllm", True), ("vllm", False)])
def test_a_standalone_component_needs_the_ssh_keys_too(engine: str, needed: bool) -> None:
    children = render.component_children(parse_component(component(engine, [])), CONFIG)
    assert any(render.needs_ssh_keys(each, "mpi-keys") for each in children) == needed


def test_trtllm_has_keys_by_default() -> None:
    """They need no setting, as in Dynamo's chart."""
    config = render_config(Settings.model_validate({}), lambda _: True, {})
    assert config.ssh_secret == "mpi-run-ssh-secret"


def test_a_missing_orchestrator_is_reported() -> None:
    with pytest.raises(render.RenderError, match="no multinode orchestrator available for 2 nodes"):
        render.component_children(parse_component(component("vllm", [])), replace(CONFIG, leader_worker_sets=False))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"limits": {"nvidia.com/gpu": "8"}}, 8),
        ({"requests": {"nvidia.com/gpu": 2}, "limits": {"nvidia.com/gpu": 8}}, 2),
        ({"limits": {"amd.com/gpu": "4", "cpu": "64"}}, 4),
        ({"limits": {"nvidia.com/mig-1g.5gb": "2"}}, 2),
        ({"limits": {"nvidia.com/gpu": "0", "gpu.intel.com/xe": "1"}}, 0),
        ({"limits": {"nvidia.com/gpu": "many"}}, 0),
        ({}, 0),
    ],
)
def test_gpus_of_a_container(resources, expected) -> None:
    assert gpus.count({"resources": resources}) == expected


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("worker", "backendFramework: is not set"),
        ("frontend", "multinode: a component of type frontend runs no engine"),
    ],
)
def test_pods_with_conflicting_ports_are_rejected(type_, message) -> None:
    obj = component("custom", [], type=type_)
    with pytest.raises(render.RenderError, match=message):
        pods(obj)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_a_replica_with_too_many_nodes_is_rejected_before_they_are_named(engine: str) -> None:
    """The schema allows more: their names alone would need hundreds of gigabytes."""
    obj = component(engine, [], nodes=2**31 - 1)
    with pytest.raises(
        render.RenderError, match=r"2147483647 nodes a replica are more than 1024; set a smaller number"
    ):
        render.component_children(parse_component(obj), CONFIG)
    assert render.component_children(parse_component(component(engine, [], nodes=1024)), CONFIG)


@pytest.mark.parametrize("grove", [False, True])
def test_a_graph_with_a_replica_of_too_many_nodes_is_rejected(grove: bool) -> None:
    graph = building.graph(component("vllm", [], nodes=2**31 - 1)["spec"])
    with pytest.raises(render.RenderError, match=r"component Worker: multinode\.nodeCount: 2147483647 nodes"):
        building.graph_children(graph, replace(CONFIG, grove=grove))


def test_a_replica_with_one_clique_for_each_node_may_have_fewer_nodes() -> None:
    obj = component("vllm", [], nodes=65, experimental={"gpuMemoryService": {"mode": "InterPod"}})
    with pytest.raises(render.RenderError, match="65 nodes a replica are more than 64"):
        render.component_children(parse_component(obj), CONFIG)


@pytest.mark.parametrize("grove", [False, True], ids=["alone", "grove"])
def test_roles_without_templates_change_no_pod(*, grove: bool) -> None:
    args = ["--tensor-parallel-size", "8"]
    roles = [{"name": "worker", "replicas": 2}, {"name": "leader", "replicas": 1}]
    bare, named = component("vllm", args, nodes=3), component("vllm", args, nodes=3, roles=roles)
    assert pods(named, grove=grove) == pods(bare, grove=grove)
    made = []
    for each in (bare, named):
        graph = building.graph(each["spec"], annotations={ORIGIN: "1.2.0"})
        children = building.graph_children(graph, replace(CONFIG, grove=grove))
        for child in children:
            if child["kind"] == "DynamoComponentDeployment":
                child["spec"].pop("roles", None)
        made.append(children)
    assert made[0] == made[1]


def groups(name: str, **changed: Any) -> KubeObject:
    wide = component("vllm", ["--model", "m", "-tp", "8"], **changed)
    wide["metadata"]["name"] = name
    children = render.component_children(parse_component(wide), CONFIG, NEW_COMPONENT)
    return next(each for each in children if each["kind"] == "LeaderWorkerSet")


def test_annotations_are_set_on_pods_and_not_on_their_groups() -> None:
    """As in the reference."""
    result = groups("g", annotations={EXECUTOR: "mp"}, modelRef={"name": "m"})
    assert "annotations" not in result["metadata"]
    for role in ("leaderTemplate", "workerTemplate"):
        of_pods = result["spec"]["leaderWorkerTemplate"][role]["metadata"]["annotations"]
        assert of_pods == {EXECUTOR: "mp", "nvidia.com/dynamo-base-model": "m"}


@pytest.mark.parametrize("length", [10, 48, 49, 63])
def test_names_of_groups_allow_valid_labels_of_their_pods(length: int) -> None:
    name = "g" * length
    result = groups(name)["metadata"]["name"]
    # As the StatefulSet controller labels the pods of a group: its name and a hash.
    assert len(f"{result}-999-0123456789") <= 63
    assert (result == name) == (length <= 48)


def test_names_of_groups_with_the_same_prefix_differ() -> None:
    assert groups("g" * 60 + "-a")["metadata"]["name"] != groups("g" * 60 + "-b")["metadata"]["name"]


def test_each_replica_has_its_own_service_if_a_controller_creates_them() -> None:
    """One Service for all replicas would have the name of the component's Service, and would not be created."""
    desired = groups("g-worker")
    assert render.addressed(desired, desired) is desired
    stored = {**desired, "spec": {**desired["spec"], "networkConfig": {"subdomainPolicy": "Shared"}}}
    result = render.addressed(desired, stored)
    assert result["spec"].pop("networkConfig") == {"subdomainPolicy": "UniquePerReplica"}
    assert result == desired
