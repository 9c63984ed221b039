"""Defaults at creation, in either version, and that nothing else changes."""

import copy
from typing import Any

import pytest
from dynamo_shared.api.defaults import at_each_write, default, with_roles
from dynamo_shared.api.registry.annotations import OPERATOR_ORIGIN_VERSION
from hypothesis import given

from tests.examples import examples
from tests.unit.api.validation.junk import broken

STAMP = {OPERATOR_ORIGIN_VERSION: "1.2.0"}


def _object(kind: str, version: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"nvidia.com/{version}",
        "kind": kind,
        "metadata": {"name": "graph", **metadata},
        "spec": spec,
    }


def _graph(version: str, components: Any, **metadata: Any) -> dict[str, Any]:
    field = {"v1alpha1": "services", "v1beta1": "components"}[version]
    return _object("DynamoGraphDeployment", version, {field: components}, **metadata)


ROLES = [{"name": "worker"}, {"name": "leader", "replicas": None}, {"name": "other"}, 7]
FILLED = [{"name": "worker", "replicas": 3}, {"name": "leader", "replicas": 1}, {"name": "other"}, 7]

CASES = [
    pytest.param(
        _graph("v1alpha1", {"a": {}, "b": {"replicas": 0}, "c": {"replicas": None}}),
        _graph("v1alpha1", {"a": {"replicas": 1}, "b": {"replicas": 0}, "c": {"replicas": 1}}, annotations=STAMP),
        id="replicas of services",
    ),
    pytest.param(
        _graph("v1beta1", [{"name": "a", "scalingAdapter": {}}, {"name": "b", "replicas": 3}]),
        _graph(
            "v1beta1",
            [{"name": "a", "scalingAdapter": {}, "replicas": 1}, {"name": "b", "replicas": 3}],
            annotations=STAMP,
        ),
        id="replicas of components, those of an adapter included",
    ),
    pytest.param(
        _graph("v1beta1", [{"name": "a", "replicas": 1, "multinode": {"nodeCount": 4}, "roles": ROLES}]),
        _graph(
            "v1beta1", [{"name": "a", "replicas": 1, "multinode": {"nodeCount": 4}, "roles": FILLED}], annotations=STAMP
        ),
        id="replicas of roles",
    ),
    pytest.param(
        _graph("v1alpha1", {"a": {"replicas": 1, "multinode": {"nodeCount": 4}, "roles": ROLES}}),
        _graph("v1alpha1", {"a": {"replicas": 1, "multinode": {"nodeCount": 4}, "roles": FILLED}}, annotations=STAMP),
        id="replicas of a service's roles",
    ),
    *(
        pytest.param(
            _object(
                "DynamoComponentDeployment", version, {"name": "a", "multinode": {}, "roles": [{"name": "worker"}]}
            ),
            _object(
                "DynamoComponentDeployment",
                version,
                {"name": "a", "multinode": {}, "roles": [{"name": "worker", "replicas": 1}]},
            ),
            id=f"replicas of a role, {version}",
        )
        for version in ("v1alpha1", "v1beta1")
    ),
    pytest.param(
        _graph("v1beta1", [], annotations={"a": "b"}),
        _graph("v1beta1", [], annotations={"a": "b", **STAMP}),
        id="origin version next to other annotations",
    ),
    pytest.param(
        _object("DynamoComponentDeployment", "v1beta1", {"type": "worker"}),
        _object("DynamoComponentDeployment", "v1beta1", {"type": "worker", "name": "graph"}),
        id="name of a component",
    ),
    pytest.param(
        _object("DynamoGraphDeploymentRequest", "v1beta1", {"model": "m"}),
        _object(
            "DynamoGraphDeploymentRequest",
            "v1beta1",
            {"model": "m", "image": "nvcr.io/nvidia/ai-dynamo/dynamo-planner:1.2.0"},
        ),
        id="image of a request",
    ),
    pytest.param(
        _object("DynamoGraphDeploymentRequest", "v1alpha1", {"profilingConfig": {"profilerImage": "", "config": {}}}),
        _object(
            "DynamoGraphDeploymentRequest",
            "v1alpha1",
            {"profilingConfig": {"profilerImage": "nvcr.io/nvidia/ai-dynamo/dynamo-planner:1.2.0", "config": {}}},
        ),
        id="empty image of a request",
    ),
]


@pytest.mark.parametrize(("given", "expected"), CASES)
def test_creation_sets_defaults(given: dict[str, Any], expected: dict[str, Any]) -> None:
    before = copy.deepcopy(given)
    assert default(given, platform_version="1.2.0") == expected
    assert given == before


@pytest.mark.parametrize(("_given", "expected"), CASES)
def test_an_object_with_all_defaults_is_returned_unchanged(_given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert default(expected, platform_version="1.3.0") is expected


@pytest.mark.parametrize(
    "obj",
    [
        _graph("v1beta1", [{"name": "a", "replicas": 1}], annotations={OPERATOR_ORIGIN_VERSION: "0.9.0"}),
        # A dot is allowed in the name of an object, but not in the name of a component.
        _object("DynamoComponentDeployment", "v1beta1", {}, name="a.b"),
        _object("DynamoComponentDeployment", "v1beta1", {"name": "own"}),
        _object("DynamoComponentDeployment", "v1alpha1", {}),
        _object("DynamoGraphDeploymentRequest", "v1alpha1", {}),
        _object(
            "DynamoGraphDeploymentRequest",
            "v1alpha1",
            {"profilingConfig": {"profilerImage": ""}, "deploymentOverrides": {"workersImage": "mine:1"}},
        ),
        _object("DynamoGraphDeploymentRequest", "v1beta1", {"image": "mine:1"}),
        _object("DynamoModel", "v1alpha1", {"modelName": "m"}),
        {**_graph("v1beta1", [{"name": "a"}]), "apiVersion": "example.com/v1beta1"},
    ],
)
def test_values_of_users_are_kept(obj: dict[str, Any]) -> None:
    assert default(obj, platform_version="1.2.0") is obj


def test_a_platform_that_does_not_know_its_version_stamps_nothing() -> None:
    graph = _graph("v1beta1", [{"name": "a", "replicas": 1}])
    request = _object("DynamoGraphDeploymentRequest", "v1beta1", {"model": "m"})
    assert default(graph, platform_version="") is graph
    assert default(request, platform_version="") is request


@pytest.mark.parametrize(
    "junk",
    [
        {},
        {"kind": 3, "apiVersion": []},
        _graph("v1alpha1", ["a"], annotations=["x"]),
        _graph("v1beta1", {"a": {}}, annotations="x"),
        _object("DynamoGraphDeployment", "v1beta1", "junk", annotations=3),
        {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": []},
        {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoComponentDeployment", "metadata": None, "spec": {}},
        _object("DynamoGraphDeploymentRequest", "v1beta1", None),
    ],
)
def test_junk_is_left_as_it_is(junk: dict[str, Any]) -> None:
    assert default(junk, platform_version="1.2.0") is junk


@examples(40)
@given(obj=broken())
def test_defaults_are_set_once_for_any_object(obj: dict[str, Any]) -> None:
    before = copy.deepcopy(obj)
    filled = default(obj, platform_version="1.2.0")
    assert obj == before
    assert default(filled, platform_version="1.3.0") is filled


def test_replicas_of_roles_are_set_at_each_write_and_nothing_else_is() -> None:
    roles = [{"name": "leader", "replicas": 2}, {"name": "worker"}]
    sent = _graph(
        "v1beta1", [{"name": "a", "multinode": {"nodeCount": 3}, "roles": roles}, {"name": "b", "roles": roles}]
    )
    before = copy.deepcopy(sent)
    first, second = with_roles(sent)["spec"]["components"]
    assert first["roles"] == [{"name": "leader", "replicas": 2}, {"name": "worker", "replicas": 2}]
    assert second is sent["spec"]["components"][1]
    assert sent == before
    assert "annotations" not in with_roles(sent)["metadata"]


@pytest.mark.parametrize("roles", [None, 7, {}, [], [{"name": "leader", "replicas": 1}]])
@pytest.mark.parametrize("multinode", [None, 7, {"nodeCount": 0}, {"nodeCount": 2}])
def test_an_object_that_needs_no_default_is_returned_itself(roles: Any, multinode: Any) -> None:
    sent = _object("DynamoComponentDeployment", "v1beta1", {"name": "a", "multinode": multinode, "roles": roles})
    assert with_roles(sent) is sent


def test_targets_of_overrides_are_set_from_their_places_at_each_write() -> None:
    def override(**fields: Any) -> dict[str, Any]:
        return {"providerOverride": {"apiVersion": "grove.io/v1alpha1", "value": {}, **fields}}

    several, group = {"multinode": {"nodeCount": 2}}, {"experimental": {"grove": {"forceScalingGroup": True}}}
    memory = {"experimental": {"gpuMemoryService": {"mode": "InterPod"}}}
    sent = _graph(
        "v1beta1",
        [
            {"name": "a", **override()},
            {"name": "b", **override(), **group},
            {"name": "c", **override(), **memory},
            {"name": "d", **override(), **several, "roles": [{"name": "worker", "replicas": 1, **override()}]},
            {"name": "e", **override(target="Other")},
            {"name": "f", **override(apiVersion="grove.io/v2")},
        ],
    )
    sent["spec"] |= override()
    before = copy.deepcopy(sent)
    spec = at_each_write(sent)["spec"]
    targets = [each["providerOverride"].get("target") for each in (spec, *spec["components"])]
    clique, scaling = "PodCliqueTemplateSpec", "PodCliqueScalingGroupConfig"
    assert targets == ["PodCliqueSet", clique, scaling, scaling, scaling, "Other", None]
    assert spec["components"][3]["roles"][0]["providerOverride"]["target"] == clique
    assert sent == before
    filled = at_each_write(sent)
    assert at_each_write(filled) is filled
