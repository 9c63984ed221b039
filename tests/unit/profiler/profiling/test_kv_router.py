"""How frontends of generated graphs choose workers."""

import copy
from typing import Any

import pytest
from dynamo_profiler.profiling.generation.candidates import unmeasured
from dynamo_profiler.profiling.generation.kv_router import routed
from dynamo_profiler.profiling.thorough import read_output
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.manifest import load_manifest

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
