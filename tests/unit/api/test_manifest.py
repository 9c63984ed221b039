"""Manifests of users: all errors at once, each with its place, the error and the allowed values."""

import contextlib
import json
import textwrap
from typing import Any

import pytest
import yaml
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.manifest import load_manifest, load_manifests
from dynamo_shared.api.untrusted.limits import MANIFEST
from dynamo_shared.api.v1beta1 import ComponentType, DynamoComponentDeployment, DynamoGraphDeployment
from hypothesis import given
from hypothesis import strategies as st

HEAD = "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {name: graph}\n"


def refusals(source: str | dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidManifest) as refused:
        load_manifest(source)
    return [str(error) for error in refused.value.errors]


def with_components(*components: dict[str, Any]) -> dict[str, Any]:
    return {**yaml.safe_load(HEAD), "spec": {"components": list(components)}}


def test_a_valid_manifest_becomes_a_graph() -> None:
    graph = load_manifest(
        HEAD
        + textwrap.dedent(
            """
            spec:
              backendFramework: vllm
              components:
              - name: Frontend
                type: frontend
                scalingAdapter:
                podTemplate:
                  metadata: {creationTimestamp: null}
                  spec: {containers: [{name: main, image: "x:1", anything: {goes: here}}]}
              - {name: Worker, type: worker, sharedMemorySize: 0}
            """
        )
    )
    assert isinstance(graph, DynamoGraphDeployment)
    frontend, worker = graph.spec.components
    assert frontend.type is ComponentType.FRONTEND
    assert frontend.scaling_adapter is None, "null is absent, as for the API server"
    assert frontend.pod_template == {
        "metadata": {},
        "spec": {"containers": [{"name": "main", "image": "x:1", "anything": {"goes": "here"}}]},
    }
    assert worker.shared_memory_size == 0


def test_a_component_deployment_is_loaded_too() -> None:
    text = HEAD.replace("DynamoGraphDeployment", "DynamoComponentDeployment") + "spec: {type: worker}\n"
    loaded = load_manifest(text)
    assert isinstance(loaded, DynamoComponentDeployment)
    assert loaded.spec.name is None


def test_all_errors_are_reported_at_once() -> None:
    text = HEAD.replace("name: graph", "name: My_Graph, label: {a: b}") + textwrap.dedent(
        """
        spec:
          backendFramework: vlm
          labels: {nvidia.com/x: 3}
          components:
          - {name: Frontend, type: Frontend, replicas: "2"}
          - {name: frontend, sharedmemorysize: 1Gi, sharedMemorySize: 1GB, replicas: -1, multinode: {nodeCount: 1}}
          - {name: a-, experimental: {checkpoint: {}, failover: {numShadows: 2}}}
        """
    )
    assert refusals(text) == [
        "metadata.label: no such field; did you mean labels?",
        "spec.backendFramework: 'vlm' is not allowed; one of 'sglang', 'vllm', 'trtllm'",
        "spec.components[0].type: 'Frontend' is not allowed; one of 'frontend', 'worker', 'prefill', 'decode', 'planner', 'epp'",
        "spec.components[0].replicas: must be an integer, not '2'",
        "spec.components[1].replicas: -1 is too small; at least 0",
        "spec.components[1].multinode.nodeCount: 1 is too small; at least 2",
        "spec.components[1].sharedMemorySize: '1GB' is not a quantity; examples: 8Gi, 500m, 2, 1e9",
        "spec.components[1].sharedmemorysize: no such field; did you mean sharedMemorySize?",
        "spec.components[2].experimental.failover.numShadows: 2 is too large; at most 1",
        "spec.components[2].name: 'a-' is not allowed; letters, digits and '-', and a letter or digit first and last",
        'spec.labels["nvidia.com/x"]: must be a string, not 3',
        "metadata.name: 'My_Graph' is not a valid object name: lower-case letters, digits, '-' and '.', a letter "
        "or digit first and last",
        "spec.components[1].name: 'frontend' is already the name of [0], if case is ignored",
    ]


def test_rules_between_fields_are_checked_too() -> None:
    """tests/admission/cases has all of them."""
    picker = {"name": "a", "eppConfig": {"configMapRef": {"key": "k"}}}
    assert refusals(with_components(picker)) == ["spec.components[0].eppConfig: needs type epp; type is not set"]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("extraPodSpec", {}, "v1beta1 has it in podTemplate.spec, with the container main for mainContainer"),
        ("componentType", "worker", "v1beta1 calls it type"),
        ("sharedMemory", {"size": "1Gi"}, "v1beta1 calls it sharedMemorySize, a size, or 0 for none"),
        ("scalingAdapters", {}, "did you mean scalingAdapter?"),
        ("Replicas", 1, "did you mean replicas?"),
        ("podTemplates", {}, "did you mean podTemplate?"),
    ],
)
def test_an_unknown_field_gets_advice(name: str, value: Any, problem: str) -> None:
    manifest = with_components({"name": "a", name: value})
    assert refusals(manifest) == [f"spec.components[0].{name}: no such field; {problem}"]


def test_an_unknown_field_without_a_similar_name_gets_the_list() -> None:
    assert refusals(with_components({"name": "a", "modelRef": {"name": "m", "qqq": 1}})) == [
        "spec.components[0].modelRef.qqq: no such field; there are name, revision"
    ]


def test_an_unknown_version_gets_the_list_of_versions() -> None:
    assert refusals(HEAD.replace("v1beta1", "v1")) == [
        "apiVersion: 'nvidia.com/v1' is not supported; DynamoGraphDeployment has nvidia.com/v1beta1, nvidia.com/v1alpha1"
    ]
    assert refusals(HEAD.replace("DynamoGraphDeployment", "DynamoNimRequest")) == [
        "apiVersion: 'nvidia.com/v1beta1' is not supported; DynamoNimRequest has nvidia.com/v1alpha1"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected one manifest, got 0"),
        (HEAD + "---\n" + HEAD, "expected one manifest, got 2"),
        ("- a", "a manifest must be an object, not a list"),
        ("x: 1", "kind: required, and missing; one of DynamoGraphDeployment, DynamoComponentDeployment"),
        (
            "kind: DynamoGraphDeploymnt",
            "kind: 'DynamoGraphDeploymnt' is not a supported kind; did you mean DynamoGraphDeployment?",
        ),
        (
            "kind: DynamoGraphDeployment",
            "apiVersion: required, and missing; DynamoGraphDeployment has nvidia.com/v1beta1, nvidia.com/v1alpha1",
        ),
        ("a: [1, *b]", "is not valid YAML: line 1, column 8: undefined alias 'b'"),
        ("a: 1\na: 2", "is not valid YAML: line 2, column 1: the key 'a' is given twice"),
        ("a: &a [*a]", "nested more than 64 levels deep"),
        ("[" * 100_000, "nested more than 64 levels deep"),
        ("a: !!set {b}", "is not valid YAML: line 1, column 4: could not determine a constructor for the tag"),
        ("a: 1\nb: .inf", "is not valid YAML: line 2, column 4: JSON has no such value: .inf"),
        ("a: !!python/object:os.system {}", None),
        ("a: \x07", None),
        ("a" * (MANIFEST.characters + 1), f"longer than {MANIFEST.characters} characters"),
    ],
)
def test_texts_that_are_not_a_manifest(text: str, problem: str | None) -> None:
    (result,) = refusals(text)
    assert result.startswith(problem or "is not valid YAML: ")


@pytest.mark.parametrize("merged", [False, True])
def test_a_few_lines_that_expand_to_billions_of_values_are_rejected_at_once(merged: bool) -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{number}: x" for number in range(10)) + "}"]
    for level in range(1, 12):
        aliases = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} {{<<: [{aliases}]}}" if merged else f"a{level}: &a{level} [{aliases}]")
    (result,) = refusals("\n".join(lines))
    assert result.endswith(("more than 250000 values", "more than 10000 keys in one object"))


def test_many_objects_merged_into_one_are_rejected() -> None:
    (result,) = refusals("a: &a {b: 1}\nc: {<<: [" + ", ".join(["*a"] * 17) + "]}")
    assert result.endswith("more than 16 objects merged into one")


def test_documents_of_other_kinds_are_skipped() -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    result = load_manifests(f"---\n{HEAD}---\n---\n{json.dumps(config_map)}\n")
    assert isinstance(result[0], DynamoGraphDeployment)
    assert result[1:] == [config_map]


def test_errors_of_several_documents_name_their_object() -> None:
    with pytest.raises(InvalidManifest) as refused:
        load_manifests(f"{HEAD}spec: {{x: 1}}\n---\n{HEAD.replace('graph', 'other')}spec: []\n---\n7\n")
    assert [str(error) for error in refused.value.errors] == [
        "DynamoGraphDeployment graph: spec.x: no such field; there are annotations, backendFramework, components, env, "
        "experimental, labels, priorityClassName, providerOverride, restart, topologyConstraint",
        "DynamoGraphDeployment other: spec: must be an object, not a list",
        "document 3: a manifest must be an object, not 7",
    ]


def test_a_text_without_a_manifest_is_an_error() -> None:
    with pytest.raises(InvalidManifest, match="it holds no manifest"):
        load_manifests("---\n# nothing\n")


def test_the_callers_object_is_not_changed() -> None:
    manifest = with_components({"name": "a", "type": None})
    load_manifest(manifest)
    assert manifest == with_components({"name": "a", "type": None})


KEYS = ["name", "type", "components", "eppConfig", "config", "podTemplate", "spec", "containers", "env", "x"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | st.text(max_size=3) | st.binary(max_size=2),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_text_is_loaded_or_rejected(spec: Any) -> None:
    with contextlib.suppress(InvalidManifest):
        load_manifest({**yaml.safe_load(HEAD), "spec": spec})
