"""Leader and workers with their own pod templates, whose commands their author writes, from Dynamo 1.6 on."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.render.errors import RenderError
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
    workloads,
)
from .test_hashing import hash_of

ON_GROVE = replace(CONFIG, grove=True, discovery_backend="kubernetes")
SETS = replace(CONFIG, leader_worker_sets=True, ssh_secret="keys")
MP = ["--distributed-executor-backend", "mp", "--nnodes", "2", "--node-rank", "$(DYNAMO_RANK)"]
VLLM: dict[str, Any] = {"command": ["python3", "-m", "dynamo.vllm"], "args": MP}


def template(role: str, main: KubeObject | None = None, **fields: Any) -> KubeObject:
    container = {"name": "main", "image": f"{role}:1", **(VLLM if main is None else main)}
    metadata = {"labels": {"of": role, role: "yes"}, "annotations": {"note": role}}
    return {"metadata": metadata, "spec": {"containers": [container], "nodeSelector": {"for": role}, **fields}}


def roles(leader: KubeObject | None = None, worker: KubeObject | None = None) -> list[KubeObject]:
    return [
        {"name": "leader", "podTemplate": leader or template("leader")},
        {"name": "worker", "podTemplate": worker or template("worker")},
    ]


def spread(nodes: int = 2, given: list[KubeObject] | None = None, **fields: Any) -> KubeObject:
    fields = {"multinode": {"nodeCount": nodes}, "roles": given or roles(), **fields}
    return {"name": "Worker", "type": "worker", **fields}


def pods_of_set(single: KubeObject, **fields: Any) -> tuple[KubeObject, KubeObject]:
    (made,) = of_kind(workloads(graph(single, **fields), SETS)["Worker"], "LeaderWorkerSet")
    of_group = made["spec"]["leaderWorkerTemplate"]
    return of_group["leaderTemplate"], of_group["workerTemplate"]


def mains_of_set(single: KubeObject, **fields: Any) -> tuple[KubeObject, KubeObject]:
    leader, worker = pods_of_set(single, **fields)
    return leader["spec"]["containers"][0], worker["spec"]["containers"][0]


def test_each_role_has_pods_of_its_template() -> None:
    for role, pod in zip(("leader", "worker"), pods_of_set(spread()), strict=True):
        assert (pod["metadata"]["labels"]["of"], pod["metadata"]["annotations"]["note"]) == (role, role)
        assert len({"leader", "worker"} & pod["metadata"]["labels"].keys()) == 1
        assert pod["spec"]["nodeSelector"] == {"for": role}
        assert pod["spec"]["containers"][0]["image"] == f"{role}:1"


def test_on_grove_each_clique_has_the_template_of_its_role() -> None:
    (made,) = of_kind(graph_children(graph(spread(3)), ON_GROVE), "PodCliqueSet")
    leader, worker = made["spec"]["template"]["cliques"]
    for role, clique in (("leader", leader), ("worker", worker)):
        assert {**clique["labels"], "of": role, role: "yes"} == clique["labels"]
        assert clique["annotations"]["note"] == role
        assert clique["spec"]["podSpec"]["containers"][0]["image"] == f"{role}:1"
    assert "leader" not in worker["labels"]
    assert (leader["spec"]["replicas"], worker["spec"]["replicas"]) == (1, 2)


def test_commands_are_the_authors_except_for_the_port_of_vllm() -> None:
    for main in mains_of_set(spread()):
        assert (main["command"], main["args"]) == (VLLM["command"], [*MP, "--master-port", "29500"])


@pytest.mark.parametrize(
    "args",
    [[*MP, "--master-port", "7"], ["--distributed-executor-backend", "ray"], []],
    ids=["another port", "Ray", "no flags"],
)
def test_no_other_flag_is_added_to_a_command(args: list[str]) -> None:
    main = {**VLLM, "args": args}
    leader, worker = pods_of_set(spread(given=roles(template("leader", main), template("worker", main))))
    assert [each["spec"]["containers"][0].get("args", []) for each in (leader, worker)] == [args, args]
    assert "initContainers" not in worker["spec"]


def test_another_program_needs_no_place_for_flags() -> None:
    own = {"command": ["torchrun"], "args": ["serve.py"]}
    given = roles(template("leader", own), template("worker", own))
    assert [each["args"] for each in mains_of_set(spread(given=given), backendFramework="vllm")] == [["serve.py"]] * 2
    assert [each["args"] for each in mains_of_set(spread(given=given))] == [["serve.py"]] * 2


def test_sglang_runs_as_written() -> None:
    own = {"command": ["python3", "-m", "dynamo.sglang"], "args": ["--model", "m"]}
    made = mains_of_set(spread(given=roles(template("leader", own), template("worker", own))))
    assert [each["args"] for each in made] == [["--model", "m"]] * 2


def test_tensorrt_llm_keeps_its_ssh_keys_and_the_probe_of_sshd() -> None:
    leader_main = {"command": ["mpirun"], "args": ["python3", "-m", "dynamo.trtllm"]}
    given = roles(template("leader", leader_main), template("worker", {"command": ["/usr/sbin/sshd"], "args": ["-D"]}))
    leader, worker = pods_of_set(spread(given=given), backendFramework="trtllm")
    for pod in (leader, worker):
        assert any(each["name"] == "keys" for each in pod["spec"]["volumes"])
        assert any(each["mountPath"] == "/ssh-pk" for each in pod["spec"]["containers"][0]["volumeMounts"])
    assert worker["spec"]["containers"][0]["command"] == ["/usr/sbin/sshd"]
    assert worker["spec"]["containers"][0]["readinessProbe"]["tcpSocket"] == {"port": 2222}
    assert leader["spec"]["containers"][0]["command"] == ["mpirun"]


def test_workers_have_the_probes_of_their_author_and_the_leader_has_the_usual_ones() -> None:
    own = {"readinessProbe": {"exec": {"command": ["true"]}}}
    leader, worker = mains_of_set(spread(given=roles(worker=template("worker", {**VLLM, **own}))))
    probes = [{name for name in each if name.endswith("Probe")} for each in (leader, worker)]
    assert probes == [{"livenessProbe", "readinessProbe", "startupProbe"}, {"readinessProbe"}]


def test_workers_of_vllm_wait_for_their_leader() -> None:
    leader, worker = pods_of_set(spread())
    assert "initContainers" not in leader["spec"]
    (waiting,) = worker["spec"]["initContainers"]
    assert (waiting["name"], waiting["image"]) == ("wait-for-leader-mp", "worker:1")


def test_both_roles_get_their_rank_and_the_variables_of_the_graph() -> None:
    leader, worker = mains_of_set(spread(), env=[{"name": "ALL", "value": "1"}])
    ranks = [variables(each)["DYNAMO_RANK"] for each in (leader, worker)]
    assert ranks == ["0", "$(LWS_WORKER_INDEX)"]
    assert [variables(each)["ALL"] for each in (leader, worker)] == ["1", "1"]
    suffixes = {variables(each)["DYN_NAMESPACE_WORKER_SUFFIX"] for each in (leader, worker)}
    assert len(suffixes) == 1


@pytest.mark.parametrize(("role", "images"), [("leader", ["leader:1", "img:1"]), ("worker", ["img:1", "worker:1"])])
def test_a_role_without_a_template_has_that_of_the_component(role: str, images: list[str]) -> None:
    single = component(main={**VLLM, "image": "img:1"}, multinode={"nodeCount": 2})
    given = {role: {"podTemplate": template(role)}}
    single["roles"] = [{"name": each, **given.get(each, {})} for each in ("leader", "worker")]
    mains = mains_of_set(single)
    assert [each["image"] for each in mains] == images
    assert [each["args"] for each in mains] == [[*MP, "--master-port", "29500"]] * 2
    made = component_deployments(graph(single), SETS)["Worker"]
    own = {**made, "spec": {**made["spec"], **single}}
    (alone,) = of_kind(component_children(own, SETS), "LeaderWorkerSet")
    of_group = alone["spec"]["leaderWorkerTemplate"]
    pods = (of_group["leaderTemplate"], of_group["workerTemplate"])
    assert [each["spec"]["containers"][0]["image"] for each in pods] == images


def test_the_generation_depends_on_a_template_that_only_workers_have() -> None:
    def hashed(image: str) -> str:
        single = component(main={**VLLM, "image": image}, multinode={"nodeCount": 2})
        return hash_of(
            graph({**single, "roles": [{"name": "leader", "podTemplate": template("leader")}, {"name": "worker"}]})
        )

    assert hashed("a:1") != hashed("a:2")


def test_the_generation_depends_on_both_templates() -> None:
    plain = hash_of(graph(spread()))
    for given in (
        roles(template("leader", {**VLLM, "image": "x"})),
        roles(worker=template("worker", {**VLLM, "image": "x"})),
    ):
        assert hash_of(graph(spread(given=given))) != plain
    with_numbers = [{**each, "replicas": 1} for each in roles()]
    assert hash_of(graph(spread(given=with_numbers))) == plain


def test_a_component_deployment_of_a_graph_renders_like_a_standalone_one() -> None:
    made = component_deployments(graph(spread()), SETS)["Worker"]
    assert made["spec"]["podTemplate"]["metadata"]["annotations"]["note"] == "leader"
    assert ["podTemplate" in each for each in made["spec"]["roles"]] == [False, True]
    own = {**made, "spec": {**made["spec"], "roles": roles()}}
    del own["spec"]["podTemplate"]
    (alone,), (of_graph,) = (of_kind(component_children(each, SETS), "LeaderWorkerSet") for each in (own, made))
    images = [
        [each["spec"]["containers"][0]["image"] for each in (of["leaderTemplate"], of["workerTemplate"])]
        for of in (alone["spec"]["leaderWorkerTemplate"], of_graph["spec"]["leaderWorkerTemplate"])
    ]
    assert images == [["leader:1", "worker:1"]] * 2


def test_the_accounts_of_both_roles_may_register() -> None:
    given = roles(template("leader", serviceAccountName="one"), template("worker", serviceAccountName="two"))
    bindings = of_kind(graph_children(graph(spread(given=given)), ON_GROVE), "RoleBinding")
    subjects = [{each["name"] for each in binding["subjects"]} for binding in bindings]
    assert any({"one", "two"} <= each for each in subjects)


def alone(**fields: Any) -> KubeObject:
    """A component deployment without a graph."""
    metadata = {"name": "w", "namespace": "n", "uid": "u"}
    kind = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoComponentDeployment"}
    return {**kind, "metadata": metadata, "spec": spread(**fields)}


def test_the_accounts_of_both_roles_may_register_without_a_graph() -> None:
    given = roles(template("leader", serviceAccountName="one"), template("worker", serviceAccountName="two"))
    made = component_children(alone(given=given), replace(SETS, discovery_backend="kubernetes"))
    (binding,) = of_kind(made, "RoleBinding")
    assert {"one", "two"} <= {each["name"] for each in binding["subjects"]}


def test_the_engine_is_the_leaders_if_workers_start_none_themselves() -> None:
    leader_main = {"command": ["mpirun"], "args": ["python3", "-m", "dynamo.trtllm"]}
    given = roles(template("leader", leader_main), template("worker", {"command": ["/usr/sbin/sshd"], "args": ["-D"]}))
    (made,) = of_kind(component_children(alone(given=given), SETS), "LeaderWorkerSet")
    worker = made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
    assert worker["readinessProbe"]["tcpSocket"] == {"port": 2222}


@pytest.mark.parametrize("role", ["leader", "worker"])
def test_an_error_in_a_template_names_its_role(role: str) -> None:
    given = roles(**{role: template(role, {"image": "", **VLLM})})
    pods = "workers" if role == "worker" else role
    with pytest.raises(
        RenderError, match=rf"Worker: podTemplate.spec.containers\[main\].image of the {pods}: is required"
    ):
        pods_of_set(spread(given=given))


def test_a_role_without_any_template_is_named() -> None:
    given = [roles()[0], {"name": "worker"}]
    with pytest.raises(RenderError, match=r"component Worker: roles\[worker\].podTemplate: is required"):
        graph_children(graph(spread(given=given)), SETS)
