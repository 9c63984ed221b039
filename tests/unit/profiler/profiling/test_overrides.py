"""What requests change of generated graphs."""

import contextlib
import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from dynamo_profiler.profiling.generation.candidates import unmeasured
from dynamo_profiler.profiling.generation.overrides import overridden
from dynamo_profiler.profiling.results import DeploymentCandidate, ProfilingFailed
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.graph_overrides import directives
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.profiler.profiling.profiling_world import layout
from tests.unit.profiler.profiling.test_generated_graphs import parts

ENGINES = {"prefill": EngineLayout(tp=2, gpus=2), "decode": EngineLayout(tp=4, gpus=4)}


def graph(backend: str = "sglang") -> dict[str, Any]:
    return unmeasured(layout(backend, **ENGINES), parts(backend=backend))[0].dgd


def component(obj: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in obj["spec"]["components"] if each["name"] == name)


def main(obj: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in component(obj, name)["podTemplate"]["spec"]["containers"] if c["name"] == "main")


@contextlib.contextmanager
def refused(match: str | None = None) -> Iterator[None]:
    """The block has an override refused, in words that match."""
    with pytest.raises(ProfilingFailed, match=match) as failed:
        yield
    assert failed.value.reason == "InvalidOverride"


ARGS = ["--mem-fraction-static", "0.75", "--watchdog-timeout", "3600"]
ALPHA = {
    "spec": {
        "services": {
            "decode": {
                "sharedMemory": {"size": "80Gi"},
                "extraPodSpec": {"mainContainer": {"workingDir": "/workspace", "args": ARGS}},
            }
        }
    }
}
APPEND = {"$patch": {"args": "append"}}
MAIN = {"name": "main", "workingDir": "/workspace", **APPEND, "args": ARGS}
BETA = {
    "apiVersion": "nvidia.com/v1beta1",
    "spec": {
        "components": [{"name": "decode", "sharedMemorySize": "80Gi", "podTemplate": {"spec": {"containers": [MAIN]}}}]
    },
}


@pytest.mark.parametrize("override", [ALPHA, {"apiVersion": "nvidia.com/v1alpha1", **ALPHA}, BETA])
def test_both_versions_give_the_same_graph(override: dict[str, Any]):
    before = graph()
    after, remarks = overridden(copy.deepcopy(before), override)
    assert remarks == ()
    assert after["apiVersion"] == "nvidia.com/v1beta1"
    assert component(after, "decode")["sharedMemorySize"] == "80Gi"
    assert main(after, "decode")["workingDir"] == "/workspace"
    # Arguments are appended, everything else stays.
    assert main(after, "decode")["args"] == [*main(before, "decode")["args"], *ARGS]
    assert main(after, "decode")["resources"] == main(before, "decode")["resources"]
    assert main(after, "decode")["image"] == main(before, "decode")["image"]
    assert component(after, "prefill") == component(before, "prefill")
    assert component(after, "Frontend") == component(before, "Frontend")
    assert component(after, "decode")["type"] == "decode"


@pytest.mark.parametrize("name", ["VllmDecodeWorker", "TRTLLMDecodeWorker", "Decode"])
def test_overrides_by_names_of_the_reference_apply(name: str):
    after, remarks = overridden(graph(), {"spec": {"services": {name: {"replicas": 3}}}})
    assert remarks == ()
    assert component(after, "decode")["replicas"] == 3
    assert component(after, "prefill")["replicas"] == 1


def test_unknown_services_are_ignored_and_reported():
    before = graph()
    after, remarks = overridden(copy.deepcopy(before), {"spec": {"services": {"Router": {"replicas": 2}}}})
    assert after == before
    assert remarks[0].reason == "OverrideIgnored"
    assert "has no 'Router'" in remarks[0].message


def test_name_and_namespace_are_unchanged():
    metadata = {"name": "other", "namespace": "elsewhere", "labels": {"team": "a"}}
    spec = {"env": [{"name": "A", "value": "1"}]}
    override = {"apiVersion": "nvidia.com/v1beta1", "kind": "Pod", "metadata": metadata, "spec": spec}
    before = graph()
    after, _ = overridden(copy.deepcopy(before), override)
    assert after["kind"] == "DynamoGraphDeployment"
    assert after["metadata"]["name"] == before["metadata"]["name"]
    assert after["metadata"]["namespace"] == "default"
    assert after["metadata"]["labels"] == {"team": "a"}
    assert after["spec"]["env"] == [{"name": "A", "value": "1"}]


def test_lists_and_values_of_v1alpha1_are_replaced():
    override = {
        "spec": {
            "envs": [{"name": "B", "value": "2"}],
            "services": {"prefill": {"replicas": 4, "extraPodSpec": {"tolerations": [{"operator": "Exists"}]}}},
        }
    }
    after, _ = overridden(graph(), override)
    assert after["spec"]["env"] == [{"name": "B", "value": "2"}]
    assert component(after, "prefill")["replicas"] == 4
    assert component(after, "prefill")["podTemplate"]["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_named_entries_of_v1beta1_are_merged():
    env = [{"name": "HF_HOME", "value": "/x"}]
    change = {
        "name": "decode",
        "podTemplate": {"spec": {"containers": [{"name": "main", "env": env}, {"name": "side"}]}},
    }
    after, _ = overridden(graph(), {"spec": {"components": [change]}})
    assert main(after, "decode")["env"] == env
    assert main(after, "decode")["args"]
    assert [c["name"] for c in component(after, "decode")["podTemplate"]["spec"]["containers"]] == ["main", "side"]


def test_a_variable_replaces_one_of_the_same_name():
    """Merged, it would have a value and a source, which no API server takes."""
    source = {"name": "HF_HOME", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
    change = {"name": "decode", "podTemplate": {"spec": {"containers": [{"name": "main", "env": [source]}]}}}
    cached = parts(backend="sglang", modelCache={"pvcName": "models"}, overrides={"dgd": beta(change)})
    made = unmeasured(layout("sglang", **ENGINES), cached)[0].dgd
    assert main(made, "decode")["env"] == [source]
    assert main(made, "prefill")["env"] == [{"name": "HF_HOME", "value": "/opt/model-cache"}]


def test_the_given_graph_is_not_changed():
    before = graph()
    kept = copy.deepcopy(before)
    overridden(before, ALPHA)
    overridden(before, BETA)
    assert before == kept


@pytest.mark.parametrize("override", [{"spec": []}, {"spec": {"services": ["decode"]}}])
def test_unknown_fields_are_rejected(override: dict[str, Any]):
    with refused():
        overridden(graph(), override)


def test_an_override_that_gives_an_invalid_graph_is_an_error_of_the_request():
    override = {"spec": {"components": [{"name": "decode", "replicas": -1}]}}
    with refused(r"admission would refuse the graph with spec\.overrides\.dgd: .*replicas"):
        unmeasured(layout("sglang", **ENGINES), parts(backend="sglang", overrides={"dgd": override}))


def offered(override: dict[str, Any]) -> DeploymentCandidate:
    return unmeasured(layout(**ENGINES), parts(overrides={"dgd": override}))[0]


def beta(*components: Any) -> dict[str, Any]:
    return {"apiVersion": "nvidia.com/v1beta1", "spec": {"components": list(components)}}


@pytest.mark.parametrize("components", [[None], [{"replicas": 2}], {"decode": {"replicas": 2}}, "decode"])
def test_components_without_names_are_reported(components: Any):
    with refused(r"spec\.components: must be a list of objects"):
        offered({"apiVersion": "nvidia.com/v1beta1", "spec": {"components": components}})


@pytest.mark.parametrize(
    "override",
    [
        beta({"name": "decode", "podTemplate": None}),
        beta({"name": "decode", "podTemplate": {"spec": {"containers": None}}}),
        {"spec": {"services": {"decode": {"extraPodSpec": None}}}},
        {"spec": {"services": {"decode": {"extraPodSpec": {"mainContainer": None}}}}},
    ],
)
def test_the_main_container_cannot_be_removed(override: dict[str, Any]):
    with refused("removes container main of decode"):
        offered(override)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"extraPodSpec": "x"}, r"extraPodSpec"),
        ({"resources": "x"}, r"resources"),
        ({"envs": "x"}, r"envs"),
        ({"sharedMemory": {"size": []}}, r"sharedMemory\.size"),
        ({"replicass": 2}, r"replicass"),
    ],
)
def test_errors_in_v1alpha1_are_reported_with_their_paths(change: dict[str, Any], path: str):
    with refused(rf"spec\.services\.decode\.{path}: "):
        offered({"spec": {"services": {"decode": change}}})


def test_amounts_may_be_numbers():
    made = offered({"spec": {"services": {"decode": {"resources": {"limits": {"gpu": 8}}}}}})
    assert main(made.dgd, "decode")["resources"]["limits"]["nvidia.com/gpu"] == "8"


@pytest.mark.parametrize(
    ("override", "gpus"),
    [
        (beta({"name": "decode", "replicas": 3}), 14),
        ({"spec": {"services": {"decode": {"resources": {"limits": {"gpu": "8"}}}}}}, 10),
        (beta({"name": "Frontend", "replicas": 2}), 6),
        # Two nodes, as the schema has it where no number is given.
        (beta({"name": "decode", "multinode": {}}), 10),
    ],
)
def test_gpus_are_counted_after_overrides(override: dict[str, Any], gpus: int):
    made, remarks = unmeasured(layout(**ENGINES), parts(overrides={"dgd": override}))
    assert made.figures.gpus == gpus
    assert [remark.reason for remark in remarks] == (["OverrideChangesGpus"] if gpus != 6 else [])


def container(name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, **APPEND, "args": ["--x"], **more}


def change(*containers: dict[str, Any], name: str = "decode") -> dict[str, Any]:
    return {"name": name, "podTemplate": {"spec": {"containers": list(containers)}}}


def test_arguments_of_v1beta1_are_replaced_without_a_directive():
    before = graph()
    plain = {"name": "main", "args": ARGS}
    after, _ = overridden(copy.deepcopy(before), beta(change(plain)))
    assert main(after, "decode") == {**main(before, "decode"), "args": ARGS}


@pytest.mark.parametrize("backend", ["vllm", "sglang", "trtllm"])
def test_a_directive_appends_and_is_removed_from_the_graph(backend: str):
    before = graph(backend)
    override = beta(change(container(env=[{"name": "A", "value": "b"}])))
    made, _ = unmeasured(layout(backend, **ENGINES), parts(backend=backend, overrides={"dgd": override}))
    assert main(made.dgd, "decode")["args"] == [*main(before, "decode")["args"], "--x"]
    assert main(made.dgd, "decode")["env"] == [{"name": "A", "value": "b"}]
    assert component(made.dgd, "prefill") == component(before, "prefill")
    assert list(directives(made.dgd)) == []
    # The override is the user's, and stays as it is.
    assert override == beta(change(container(env=[{"name": "A", "value": "b"}])))


def test_a_directive_applies_by_names_of_the_reference():
    after, remarks = overridden(graph(), beta(change(container(), name="VllmDecodeWorker")))
    assert remarks == ()
    assert main(after, "decode")["args"][-1] == "--x"


def test_a_directive_appends_to_the_default_arguments_of_a_frontend():
    """The reference's own example: the flags of the router, without the module before them."""
    after, _ = overridden(graph(), beta(change(container(args=["--router-mode", "kv"]), name="Frontend")))
    assert main(after, "Frontend")["args"] == ["-m", "dynamo.frontend", "--router-mode", "kv"]
    assert "command" not in main(after, "Frontend")
    assert "env" not in main(after, "Frontend")


def test_a_directive_of_an_unknown_component_is_ignored_with_it():
    before = graph()
    after, remarks = overridden(copy.deepcopy(before), beta(change(container(), name="Router")))
    assert after == before
    assert [each.reason for each in remarks] == ["OverrideIgnored"]


def test_new_containers_have_no_directive():
    path = 'spec.overrides.dgd.spec.components[0].podTemplate.spec.containers[1]["$patch"]'
    no_side = "the generated decode has no container 'side' with arguments to append to, only 'main'; "
    with refused("^" + re.escape(f"{path}: {no_side}")):
        overridden(graph(), beta(change(container(), container("side"))))


@pytest.mark.parametrize(
    ("wrong", "at"),
    [
        ({**container(), "$patch": "delete"}, "[\"$patch\"]: 'delete' is not allowed; only args: append is"),
        ({**container(), "args": []}, ".args: required next to $patch"),
    ],
)
def test_an_unknown_directive_is_rejected(wrong: dict[str, Any], at: str):
    with refused("^" + re.escape(f"spec.overrides.dgd.spec.components[0].podTemplate.spec.containers[0]{at}")):
        overridden(graph(), beta(change(wrong)))


GENERATED = graph()
_anything = st.recursive(
    st.sampled_from([None, True, 0, "", "append", "--x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["args", "name", "$patch"]), inner, max_size=3)
        | st.just({"args": "append"})
    ),
    max_leaves=4,
)
_containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["main", "side"]) | _anything},
    optional={
        "$patch": st.just({"args": "append"}) | _anything,
        "args": st.just(["--x"]) | _anything,
        "env": _anything,
    },
)
_templates = st.fixed_dictionaries(
    {"spec": st.fixed_dictionaries({"containers": st.lists(_containers, max_size=3) | _anything}) | _anything}
)


@given(st.sampled_from(["decode", "Frontend", "x"]), _templates | _anything)
def test_no_directive_remains_in_a_graph(name: str, template: Any):
    """What is not understood is refused, and what is understood is gone."""
    after: dict[str, Any] = {}
    with contextlib.suppress(ProfilingFailed):
        after, _ = overridden(GENERATED, beta({"name": name, "podTemplate": template}))
    assert list(directives(after)) == []
