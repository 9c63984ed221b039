"""Whether engines of generated graphs run code that comes with the model (`overrides.trustRemoteCode`)."""

import copy
from typing import Any

import pytest
from dynamo_profiler.profiling.generation.candidates import unmeasured
from dynamo_profiler.profiling.generation.trust_remote_code import trusting
from dynamo_profiler.profiling.thorough import read_output
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.manifest import load_manifest

from tests.unit.profiler.profiling.profiling_world import layout, request
from tests.unit.profiler.profiling.test_generated_graphs import main, parts
from tests.unit.profiler.profiling.test_thorough_output import graph as graph_of_a_job
from tests.unit.profiler.profiling.test_thorough_output import output

ENGINES = {"prefill": EngineLayout(tp=2, gpus=2), "decode": EngineLayout(tp=4, gpus=4)}
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
