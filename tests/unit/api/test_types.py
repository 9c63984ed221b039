"""Types: reading what the API server sends, writing what it accepts, and losing nothing."""

import copy
import re
from typing import Any

import pytest
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.definition import VersionDefinition
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import ApiModel, drop_nulls
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, Resource
from dynamo_shared.api.v1beta1 import (
    BackendFramework,
    Component,
    ComponentReplicas,
    ComponentType,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    DynamoGraphDeployment,
    GraphState,
    RollingUpdateStatus,
    parse_component,
    parse_graph,
    to_dict,
)
from dynamo_shared.api.v1beta1.enums import ComponentKind
from dynamo_shared.api.v1beta1.status import GraphStatus
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.building.objects import object_of
from tests.examples import examples


def graph(*components: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS, "graph", "default", spec={**spec, "components": list(components)})


# Values for a schema, with its defaults, as the API server would store them.
json_values = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
POD_TEMPLATES = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"labels": st.dictionaries(st.text(max_size=5), st.text(max_size=5))}
        ),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(st.fixed_dictionaries({"name": st.just("main"), "x": json_values}), max_size=2)},
            optional={"schedulingGates": json_values},
        ),
    },
)


NAMED = st.fixed_dictionaries({"name": st.text(min_size=1, max_size=5)}, optional={"x": json_values})
CONTAINERS = st.lists(NAMED, max_size=2)
EMBEDDED = {
    "core.v1.PodTemplateSpec": POD_TEMPLATES,
    "core.v1.PodSpec": st.fixed_dictionaries(
        {}, optional={"containers": CONTAINERS, "mainContainer": st.fixed_dictionaries({"x": json_values})}
    ),
    "core.v1.EnvVar": NAMED,
    "core.v1.ResourceClaim": NAMED,
}
ANY_OBJECT = st.dictionaries(st.text(max_size=5), json_values, max_size=2)


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:  # noqa: PLR0912 - one case a type
    if "x-dynamo-embedded" in schema:
        return EMBEDDED.get(schema["x-dynamo-embedded"]["type"].removeprefix("io.k8s.api."), ANY_OBJECT)
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers(0, 9) | st.sampled_from(["8Gi", "500m", "1e3", "0"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object" if "additionalProperties" in schema:
            return st.dictionaries(st.text(max_size=5), values(schema["additionalProperties"]), min_size=1, max_size=2)
        case "object" if "properties" not in schema:
            free = schema.get("x-kubernetes-preserve-unknown-fields", False)
            return st.dictionaries(st.text(max_size=5), json_values, max_size=2 if free else 0)
        case "object":
            known = {key: values(child) for key, child in schema["properties"].items()}
            always = {
                key
                for key, child in schema["properties"].items()
                if key in schema.get("required", []) or "default" in child
            }
            return st.fixed_dictionaries(
                {key: known[key] for key in known if key in always},
                optional={key: known[key] for key in known if key not in always},
            )
        case "array":
            return st.lists(values(schema["items"]), min_size=1, max_size=2)
        case "string" if schema.get("format") == "date-time":
            return st.just("2026-11-21T05:00:00Z")
        case "string" if "pattern" in schema:
            return st.from_regex(re.compile(schema["pattern"].replace("$", r"\Z"), re.ASCII)).filter(
                lambda text: len(text) <= schema.get("maxLength", 1000)
            )
        case "string":
            return st.text(min_size=schema.get("minLength", 0), max_size=8)
        case "integer":
            low = schema.get("minimum", -5)
            return st.integers(low, schema.get("maximum", low + 9))
        case "number":
            return st.floats(0, 1)
        case "boolean":
            return st.booleans()
    return json_values


def part_of(resource: Resource) -> st.SearchStrategy[dict[str, Any]]:
    """Spec and status of a stored object, without the API server's rules between fields."""
    properties = schema_of(resource)["properties"]
    status = {"status": values(properties["status"])} if "status" in properties else {}
    return st.fixed_dictionaries({"spec": values(properties["spec"])}, optional=status)


VERSIONS = [version for definition in DEFINITIONS for version in definition.versions]
HEAD: dict[str, Any] = {"metadata": {"name": "a", "namespace": "default"}}


@pytest.mark.parametrize("version", VERSIONS, ids=lambda each: f"{each.resource.kind}-{each.resource.version}")
def test_a_stored_object_survives_reading_and_writing(version: VersionDefinition) -> None:
    resource, model = version.resource, version.model
    head = {**resource.type_meta, **HEAD}

    @examples(20)
    @given(part_of(resource))
    def survives(parts: dict[str, Any]) -> None:
        parsed = model.model_validate({**head, **parts}, extra="ignore")
        assert isinstance(parsed, ApiModel)
        assert to_dict(parsed) == {**head, **parts}

    survives()


def test_graphs_and_components_have_their_own_reader() -> None:
    stored = graph({"name": "a"})
    assert to_dict(parse_graph(stored)) == stored
    component = {**stored, "kind": "DynamoComponentDeployment", "spec": {"type": "worker"}}
    assert to_dict(parse_component(component)) == component


def test_fields_of_newer_versions_are_ignored() -> None:
    stored = graph({"name": "a", "later": 1}, later={"x": 1})
    stored["metadata"]["later"] = 1
    parsed = parse_graph({**stored, "later": 1})
    assert to_dict(parsed) == graph({"name": "a"})


def test_defaults_equal_those_of_the_api_server() -> None:
    component = {
        "name": "a",
        "multinode": {},
        "experimental": {
            "gpuMemoryService": {},
            "failover": {},
            "checkpoint": {"identity": {"model": "m", "backendFramework": "vllm"}},
        },
        "eppConfig": {"configMapRef": {"key": "k"}},
    }
    identity = {"model": "m", "backendFramework": "vllm"}
    parsed = to_dict(parse_graph({**graph(component, restart={"id": "1", "strategy": {}}), "status": {}}))
    assert parsed["spec"]["restart"] == {"id": "1", "strategy": {"type": "Sequential"}}
    assert parsed["status"] == {"state": "initializing"}
    assert parsed["spec"]["components"][0] == {
        "name": "a",
        "multinode": {"nodeCount": 2},
        "eppConfig": {"configMapRef": {"key": "k", "name": ""}},
        "experimental": {
            "gpuMemoryService": {"mode": "IntraPod", "deviceClassName": "gpu.nvidia.com"},
            "failover": {"mode": "IntraPod", "numShadows": 1},
            "checkpoint": {
                "mode": "Auto",
                "identity": {**identity, "tensorParallelSize": 1, "pipelineParallelSize": 1},
            },
        },
    }


def test_an_empty_scaling_adapter_is_a_request_and_stays() -> None:
    stored = graph({"name": "a", "scalingAdapter": {}})
    assert parse_graph(stored).spec.components[0].scaling_adapter is not None
    assert to_dict(parse_graph(stored)) == stored


def test_pod_templates_and_picker_configurations_stay_as_written_except_for_nulls() -> None:
    template = {
        "metadata": {"creationTimestamp": None, "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "resources": None, "newField": [{"deep": None}, None, 1]}]},
    }
    config = {"plugins": [{"type": "x", "parameters": {"a": 1}}], "schedulingProfiles": [], "newField": {"b": 2}}
    stored = graph({"name": "a", "type": "epp", "podTemplate": template, "eppConfig": {"config": config}})
    before = copy.deepcopy(stored)
    component = parse_graph(stored).spec.components[0]
    assert component.pod_template == {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "newField": [{}, None, 1]}]},
    }
    assert component.epp_config is not None
    assert component.epp_config.config == config
    assert stored == before, "the caller's object is not touched"


def test_an_invalid_pod_template_is_rejected_before_rendering() -> None:
    template = {"metadata": {"labels": ["a"]}, "spec": {"containers": [{"image": "x"}, {"name": "y", "env": {}}]}}
    with pytest.raises(InvalidManifest) as refused:
        parse_graph(graph({"name": "a", "podTemplate": template}))
    assert [str(error) for error in refused.value.errors] == [
        "spec.components[0].podTemplate.metadata.labels: must be an object, not a list",
        "spec.components[0].podTemplate.spec.containers[0].name: required, and missing",
        "spec.components[0].podTemplate.spec.containers[1].env: must be a list, not an object",
    ]


@pytest.mark.parametrize(("field", "value"), [("replicas", "2"), ("replicas", 2.0), ("replicas", True), ("type", 1)])
def test_nothing_is_coerced(field: str, value: object) -> None:
    with pytest.raises(InvalidManifest, match=rf"spec.components\[0\].{field}"):
        parse_graph(graph({"name": "a", field: value}))


def test_null_is_the_same_as_absent_where_a_field_is_optional() -> None:
    assert drop_nulls({"a": None, "b": [None, {"c": None}]}) == {"b": [None, {}]}
    unchanged = {"a": [{"b": 1}]}
    assert drop_nulls(unchanged) is unchanged


def test_objects_are_created_in_python_with_python_names() -> None:
    made = DynamoComponentDeployment(
        metadata=ObjectMeta(name="graph-worker", namespace="default", labels={"a": "b"}),
        spec=DynamoComponentDeploymentSpec(
            name="Worker",
            type=ComponentType.WORKER,
            replicas=0,
            shared_memory_size="2Gi",
            backend_framework=BackendFramework.VLLM,
        ),
    )
    assert to_dict(made) == {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoComponentDeployment",
        "metadata": {"name": "graph-worker", "namespace": "default", "labels": {"a": "b"}},
        "spec": {
            "name": "Worker",
            "type": "worker",
            "replicas": 0,
            "sharedMemorySize": "2Gi",
            "backendFramework": "vllm",
        },
    }
    assert type(to_dict(made)["spec"]["type"]) is str


def test_a_status_can_be_created_in_python() -> None:
    replicas = ComponentReplicas(
        component_kind=ComponentKind.DEPLOYMENT, component_names=["a"], replicas=1, updated_replicas=1
    )
    status = GraphStatus(state=GraphState.PENDING, observed_generation=3, components={"A": replicas})
    assert to_dict(status) == {
        "state": "pending",
        "observedGeneration": 3,
        "components": {
            "A": {"componentKind": "Deployment", "componentNames": ["a"], "replicas": 1, "updatedReplicas": 1}
        },
    }


def test_a_misspelt_attribute_is_an_error() -> None:
    with pytest.raises(ValidationError):
        Component(name="a", replica=1)  # type: ignore[call-arg]


def test_values_are_immutable() -> None:
    parsed = parse_graph(graph({"name": "a"}))
    with pytest.raises(ValidationError):
        parsed.spec.components[0].replicas = 3  # type: ignore[misc]
    assert parsed.spec.components[0].model_copy(update={"replicas": 3}).replicas == 3


def test_a_graph_needs_only_metadata() -> None:
    parsed = DynamoGraphDeployment.model_validate({"metadata": {"name": "a"}})
    assert parsed.spec.components == []


@pytest.mark.parametrize(
    "time",
    ["2026-11-21T05:00:00Z", "2026-11-21t05:00:00.123456z", "2028-02-29T23:59:59+01:00", "2026-01-01T00:00:00-00:00"],
)
def test_times_have_the_format_of_the_api_server(time: str) -> None:
    assert GraphStatus(rolling_update=RollingUpdateStatus(start_time=time)).rolling_update


@pytest.mark.parametrize(
    "time",
    [
        "",
        "yesterday",
        "2026-11-21",
        "2026-02-29T00:00:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T05:00:00",
        "٢٠٢٦-11-21T05:00:00Z",
    ],
)
def test_an_invalid_time_is_rejected(time: str) -> None:
    with pytest.raises(ValidationError, match="is not a valid time; write it as"):
        RollingUpdateStatus(start_time=time)
