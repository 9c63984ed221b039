"""What a request sets in generated graphs besides its overrides: router, code of the model, pull secrets, version."""

import copy
from typing import Any

import pytest
from dynamo_profiler.profiling.generation.candidates import unmeasured
from dynamo_profiler.profiling.generation.finishing import VERSION, routed, share_pull_secrets, trusting, versioned
from dynamo_profiler.profiling.thorough import read_output
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.manifest import load_manifest, schema_errors

from tests.unit.profiler.profiling.profiling_world import layout, request
from tests.unit.profiler.profiling.test_generated_graphs import main, parts
from tests.unit.profiler.profiling.test_thorough_output import graph as graph_of_a_job
from tests.unit.profiler.profiling.test_thorough_output import output

ENGINES = {"prefill": EngineLayout(tp=2, gpus=2), "decode": EngineLayout(tp=4, gpus=4)}
KV = {"kvRouter": {"enabled": True}}
MODE = {"name": "DYN_ROUTER_MODE", "value": "kv"}
RANDOM = {**MODE, "value": "random"}


def frontend(override: dict[str, Any] | None = None, **spec: Any) -> list[dict[str, Any]]:
    """Variables of the frontend."""
    overrides = {"overrides": {"dgd": override}} if override else {}
    made, _ = unmeasured(layout(**ENGINES), parts(**{"features": KV, **overrides, **spec}))
    load_manifest(made.dgd)
    assert all(MODE not in main(made, name).get("env", ()) for name in ENGINES)
    variables: list[dict[str, Any]] = main(made, "Frontend").get("env", [])
    return variables


def test_only_the_frontend_gets_the_router_mode():
    assert frontend() == [MODE]


@pytest.mark.parametrize("features", [None, {}, {"kvRouter": {}}, {"kvRouter": {"enabled": False}}])
def test_no_router_mode_is_set_without_the_feature(features: dict[str, Any] | None):
    assert frontend(features=features) == []


def test_the_router_mode_keeps_other_variables():
    assert frontend(modelCache={"pvcName": "m"})[-1] == MODE


def test_simulated_engines_get_the_router_mode():
    assert frontend(features={**KV, "mocker": {"enabled": True}}) == [MODE]


def of_main(**main: Any) -> dict[str, Any]:
    containers = [{"name": "main", **main}]
    return {"spec": {"components": [{"name": "Frontend", "podTemplate": {"spec": {"containers": containers}}}]}}


@pytest.mark.parametrize(
    ("override", "variables"),
    [
        (of_main(env=[RANDOM]), [RANDOM]),
        ({"spec": {"services": {"Frontend": {"envs": [RANDOM]}}}}, [RANDOM]),
        # A variable of all components is the frontend's, too.
        ({"apiVersion": "nvidia.com/v1beta1", "spec": {"env": [RANDOM]}}, []),
        # Other variables of v1alpha1 replace the list, and are not about the router.
        (
            {"spec": {"services": {"Frontend": {"envs": [{"name": "A", "value": "b"}]}}}},
            [{"name": "A", "value": "b"}, MODE],
        ),
    ],
)
def test_overrides_have_precedence(override: dict[str, Any], variables: list[dict[str, Any]]):
    assert frontend(override) == variables


def test_a_graph_of_a_profiling_job_gets_the_router_mode():
    result = read_output(request(backend="sglang", features=KV), output(graph_of_a_job()))
    assert main(result.selected, "Frontend")["env"] == [MODE]
    assert "env" not in main(result.selected, "decode")


def test_a_router_mode_of_the_job_is_kept():
    given = graph_of_a_job()
    given["spec"]["services"]["Frontend"]["envs"] = [RANDOM]
    assert main(read_output(request(features=KV), output(given)).selected, "Frontend")["env"] == [RANDOM]


def test_the_given_graph_is_not_changed():
    before = unmeasured(layout(**ENGINES), parts())[0].dgd
    kept = copy.deepcopy(before)
    routed(before, request(features=KV).spec)
    assert before == kept


SECRETS = {"imagePullSecrets": [{"name": "mine"}]}


def roles(*pods: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "podTemplate": {"spec": pod}} for name, pod in zip(("leader", "worker"), pods, strict=True)]


@pytest.mark.parametrize(
    "spec",
    [
        {"components": [{"name": "w", "roles": roles({}, SECRETS)}]},
        {"services": {"w": {"roles": roles(SECRETS, {})}}},
        {"services": {"w": {"roles": [None, 1, {"podTemplate": []}, *roles(SECRETS, {})]}}},
    ],
)
def test_pull_secrets_of_a_role_reach_the_pods_of_all_components(spec: dict[str, Any]) -> None:
    graph = {"spec": {"components": [{"name": "f"}]}}
    (made,) = share_pull_secrets(graph, {"spec": spec})["spec"]["components"]
    assert made["podTemplate"]["spec"] == SECRETS


@pytest.mark.parametrize("template", [{}, {"podTemplate": None}])
def test_pods_of_each_role_get_the_pull_secrets(template: dict[str, Any]) -> None:
    other = {"imagePullSecrets": [{"name": "other"}]}
    graph = {"spec": {"components": [{"name": "w", "multinode": {}, "roles": roles({}, other), **template}]}}
    override = {"spec": {"components": [{"name": "f", "podTemplate": {"spec": SECRETS}}]}}
    (made,) = share_pull_secrets(graph, override)["spec"]["components"]
    assert made.get("podTemplate") is None
    leader, worker = (each["podTemplate"]["spec"]["imagePullSecrets"] for each in made["roles"])
    assert leader == SECRETS["imagePullSecrets"]
    assert worker == [*other["imagePullSecrets"], *SECRETS["imagePullSecrets"]]


TRUST, FLAG = {"trustRemoteCode": True}, "--trust-remote-code"


def lines(backend: str = "vllm", **spec: Any) -> dict[str, list[str]]:
    """Command lines of a graph's components."""
    made, _ = unmeasured(layout(backend, **ENGINES), parts(**{"overrides": TRUST, **spec}))
    load_manifest(made.dgd)
    mains = {name: main(made, name) for name in ("Frontend", *ENGINES)}
    return {name: [*each.get("command", ()), *each.get("args", ())] for name, each in mains.items()}


@pytest.mark.parametrize("backend", ["vllm", "sglang"])
def test_every_engine_gets_the_flag(backend: str):
    made = lines(backend)
    assert {name: line.count(FLAG) for name, line in made.items()} == {"Frontend": 0, "prefill": 1, "decode": 1}
    without = lines(backend, overrides=None)
    assert {name: [each for each in line if each != FLAG] for name, line in made.items()} == without


@pytest.mark.parametrize("overrides", [None, {}, {"trustRemoteCode": False}])
def test_no_flag_is_set_without_trust(overrides: dict[str, Any] | None):
    assert all(FLAG not in line for line in lines(overrides=overrides).values())


def test_engines_without_such_a_flag_are_unchanged():
    assert lines("trtllm") == lines("trtllm", overrides=None)


def test_simulated_engines_are_unchanged():
    mocked: dict[str, Any] = {"features": {"mocker": {"enabled": True}}}
    assert lines(**mocked) == lines(overrides=None, **mocked)


def test_a_flag_of_an_override_is_not_repeated():
    containers = [{"name": "main", "$patch": {"args": "append"}, "args": [FLAG]}]
    dgd = {"spec": {"components": [{"name": "decode", "podTemplate": {"spec": {"containers": containers}}}]}}
    made = lines(overrides={**TRUST, "dgd": {"apiVersion": "nvidia.com/v1beta1", **dgd}})
    assert {name: line.count(FLAG) for name, line in made.items()} == {"Frontend": 0, "prefill": 1, "decode": 1}


def of_worker(**container: Any) -> dict[str, Any]:
    """Main container of a worker that ran as given, with trust."""
    pod = {"containers": [{"name": "main", **container}]}
    graph = {"spec": {"components": [{"name": "w", "type": "worker", "podTemplate": {"spec": pod}}]}}
    kept = copy.deepcopy(graph)
    made = trusting(graph, request(overrides=TRUST).spec)
    assert graph == kept
    changed: dict[str, Any] = made["spec"]["components"][0]["podTemplate"]["spec"]["containers"][0]
    return changed


def test_a_script_gets_the_flag_at_its_end():
    shell = {"command": ["sh", "-c"], "args": ["exec python3 -m dynamo.vllm --model m\n"]}
    assert of_worker(**shell)["args"] == [f"exec python3 -m dynamo.vllm --model m {FLAG}"]
    whole = ["sh", "-c", "exec python3 -m dynamo.vllm"]
    assert of_worker(command=whole) == {"name": "main", "command": [*whole[:2], f"{whole[2]} {FLAG}"]}
    has_it = {"command": ["sh", "-c"], "args": [f"python3 -m dynamo.vllm {FLAG} --model m"]}
    assert of_worker(**has_it) == {"name": "main", **has_it}


def test_engines_of_roles_with_templates_get_the_flag():
    main = {"name": "main", "command": ["python3", "-m", "dynamo.vllm"]}
    sshd = {"name": "main", "command": ["/usr/sbin/sshd"]}
    roles = [
        {"name": name, "podTemplate": {"spec": {"containers": [each]}}}
        for name, each in (("leader", main), ("worker", sshd))
    ]
    graph = {"spec": {"components": [{"name": "w", "type": "worker", "multinode": {}, "roles": roles}]}}
    (made,) = trusting(graph, request(overrides=TRUST).spec)["spec"]["components"]
    assert "podTemplate" not in made
    leader, worker = (each["podTemplate"]["spec"]["containers"] for each in made["roles"])
    assert leader == [{**main, "args": [FLAG]}]
    assert worker == [sshd]


def test_numbers_in_a_command_are_kept_and_reported():
    line = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--port", 8000]}
    assert of_worker(**line) == {"name": "main", **line}


def test_a_graph_of_a_profiling_job_gets_the_flag():
    made = read_output(request(backend="sglang", overrides=TRUST), output(graph_of_a_job())).selected
    assert FLAG in " ".join([*main(made, "decode").get("command", ()), *main(made, "decode").get("args", ())])
    assert FLAG not in str(main(made, "Frontend"))


def graph_of_versions(**own: str) -> dict[str, Any]:
    """A generated graph, with versions of some of its components."""
    made = unmeasured(layout(**ENGINES), parts())[0].dgd
    for component in made["spec"]["components"]:
        if component["name"] in own:
            component[VERSION] = own[component["name"]]
    return made


def versions(obj: dict[str, Any]) -> dict[str, str | None]:
    return {each["name"]: each.get(VERSION) for each in obj["spec"]["components"]}


@pytest.mark.parametrize(
    ("asked", "own", "expected"),
    [
        ("1.5.0", {}, {"Frontend": "1.5.0", "prefill": "1.5.0", "decode": "1.5.0"}),
        ("1.5.0", {"decode": "1.4.2"}, {"Frontend": "1.5.0", "prefill": "1.5.0", "decode": "1.4.2"}),
        (None, {"decode": "1.4.2"}, {"Frontend": None, "prefill": None, "decode": "1.4.2"}),
    ],
)
def test_components_without_a_version_get_the_one_of_the_request(
    asked: str | None, own: dict[str, str], expected: dict[str, str | None]
):
    before = graph_of_versions(**own)
    kept = copy.deepcopy(before)
    assert versions(versioned(before, request(runtimeVersionOverride=asked).spec)) == expected
    assert before == kept


@pytest.mark.parametrize(
    ("version", "is_one"),
    [
        *((each, True) for each in ("0.0.0", "1.5.0", "1.10.0", "9999.9999.9999")),
        *(
            (each, False)
            for each in ("", "1.5", "v1.5.0", "1.5.0-rc1", "1.5.0+a", "01.5.0", "1.5.00", "10000.0.0", "1.5.0\n")
        ),
    ],
)
def test_a_version_has_three_numbers(version: str, is_one: bool):
    obj = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentRequest",
        "metadata": {"name": "r", "namespace": "n"},
        "spec": {"model": "m", VERSION: version},
    }
    words = [str(each) for each in schema_errors(obj)]
    wrong = (
        f"spec.{VERSION}: {version!r} is not allowed; MAJOR.MINOR.PATCH, each from 0 to 9999 and without leading zeros"
    )
    assert words == ([] if is_one else [wrong])
