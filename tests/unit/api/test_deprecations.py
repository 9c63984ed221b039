"""The registry of deprecations: what it covers, and how use is detected and reported."""

from typing import Any

import pytest
from dynamo_shared.api import deprecations, resources

from tools.releases.compare import SORTS


def _object(kind: str, spec: Any, version: str = "v1alpha1") -> dict[str, Any]:
    return {"apiVersion": f"nvidia.com/{version}", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def _used(obj: Any) -> list[str]:
    return [path for path, _ in deprecations.used(obj)]


def test_nothing_is_remembered_of_unknown_kinds() -> None:
    """Every pod that reaches the port of admission can invent kinds, and each may have megabytes."""
    before = deprecations._tree.cache_info().currsize
    for kind in ("Invented", "x" * 1000):
        assert _used(_object(kind, {})) == []
    assert deprecations._tree.cache_info().currsize == before


@pytest.mark.parametrize(
    ("obj", "paths"),
    [
        (
            _object("DynamoGraphDeployment", {"services": {"Decode": {"autoscaling": {"enabled": True}}, "b.c": {}}}),
            ["", "spec.services.Decode.autoscaling"],
        ),
        (
            _object("DynamoGraphDeployment", {"services": {"b.c": {"dynamoNamespace": "x"}}}),
            ["", 'spec.services["b.c"].dynamoNamespace'],
        ),
        (_object("DynamoGraphDeployment", {"pvcs": [{"name": "a"}]}), ["", "spec.pvcs"]),
        (_object("DynamoGraphDeployment", {"components": []}, "v1beta1"), []),
        (_object("DynamoComponentDeployment", {"dynamoNamespace": ""}), ["", "spec.dynamoNamespace"]),
        (_object("DynamoComponentDeployment", {"autoscaling": None}), [""]),
        (_object("DynamoGraphDeploymentScalingAdapter", {}), [""]),
        (_object("DynamoGraphDeploymentRequest", {"useMocker": True}), ["", "spec.useMocker"]),
        # The API server fills these in before any client reads the object.
        (_object("DynamoGraphDeploymentRequest", {"useMocker": False, "enableGpuDiscovery": True}), [""]),
        (
            _object("DynamoGraphDeploymentRequest", {"profilingConfig": {"profilerImage": "x", "outputPVC": "y"}}),
            ["", "spec.profilingConfig.profilerImage", "spec.profilingConfig.outputPVC"],
        ),
        (_object("DynamoNimRequest", {"bentoTag": "a:b"}), [""]),
        (_object("DynamoModel", {"modelName": "a"}), []),
    ],
)
def test_use_is_reported_with_the_path_as_written(obj: Any, paths: list[str]) -> None:
    assert _used(obj) == paths


@pytest.mark.parametrize(
    "junk",
    [
        None,
        [],
        "x",
        {},
        {"kind": [], "apiVersion": {}},
        {"kind": "DynamoGraphDeployment", "apiVersion": "nvidia.com/v1alpha1", "spec": []},
        _object("DynamoGraphDeployment", {"services": ["autoscaling"]}),
        _object("DynamoGraphDeployment", {"services": {"a": "autoscaling"}}),
    ],
)
def test_junk_uses_only_its_deprecated_version(junk: Any) -> None:
    assert set(_used(junk)) <= {""}


def test_a_warning_names_the_field_and_its_replacement() -> None:
    (field,) = [
        d for d in deprecations.of("DynamoGraphDeployment", "v1alpha1") if d.path.endswith("{}.dynamoNamespace")
    ]
    assert deprecations.warning("spec.services.Decode.dynamoNamespace", field) == (
        "spec.services.Decode.dynamoNamespace is deprecated and ignored since v0.8.0, and is removed in v1.0: "
        "leave it out: it follows from the namespace and the name of the graph"
    )
    assert deprecations.note(field) == (
        "Deprecated and ignored: leave it out: it follows from the namespace and the name of the graph. Removed in v1.0."
    )


def test_a_warning_of_a_version_names_kind_and_version() -> None:
    whole = deprecations.of("DynamoGraphDeploymentScalingAdapter", "v1alpha1")[0]
    assert deprecations.warning("", whole, "DynamoGraphDeploymentScalingAdapter") == (
        "nvidia.com/v1alpha1 DynamoGraphDeploymentScalingAdapter is deprecated since v0.11.0, and is removed in v1.0: "
        "write apiVersion: nvidia.com/v1beta1"
    )


def test_every_entry_belongs_to_a_served_kind() -> None:
    kinds = {resource.kind for resource in resources.ALL if resource.group == resources.GROUP} | set(SORTS)
    for each in deprecations.DEPRECATIONS:
        assert set(each.kinds) <= kinds
        assert each.replacement
        assert {each.since[0], each.removed_in[0]} == {"v"}


def test_the_table_of_the_formalization_proposal_is_covered() -> None:
    of_components = {each.path: each for each in deprecations.of("DynamoComponentDeployment", "v1alpha1")}
    assert (of_components["spec.autoscaling"].since, of_components["spec.autoscaling"].removed_in) == ("v0.7.0", "v1.0")
    dynamo_namespace = of_components["spec.dynamoNamespace"]
    assert (dynamo_namespace.since, dynamo_namespace.removed_in) == ("v0.8.0", "v1.0")


@pytest.mark.parametrize("kind", ["DynamoDeployment", "DynamoNimDeployment", "DynamoNimRequest"])
def test_legacy_kinds_name_their_successor(kind: str) -> None:
    (whole,) = deprecations.of(kind, "v1alpha1")
    assert "DynamoGraphDeployment" in whole.replacement
