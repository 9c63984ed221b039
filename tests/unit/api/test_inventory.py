"""The CRDs match the field inventory of the reference: all of its rows, and nothing more except what is listed here."""

from typing import Any

import pytest
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.crds.build import at, definition_of, schema_of
from dynamo_shared.api.crds.kinds import DEFINITIONS, LEGACY
from dynamo_shared.api.resources import Resource

from . import inventory

HERE = inventory.FOLDER.is_dir()
pytestmark = pytest.mark.skipif(
    not HERE, reason="the field inventory of the reference (../shared/reference/crds) is not here"
)

# The kinds from before graphs are in no inventory, because they were removed before it was written. It has one version
# of kinds whose versions have the same schema (tests/unit/api/test_crds.py).
VERSIONS = [
    version.resource
    for each in DEFINITIONS
    if each not in LEGACY
    for version in each.versions
    if version.storage or each.is_converted
]
PRESERVE = "x-kubernetes-preserve-unknown-fields"


def embedded(name: str) -> dict[str, Any]:
    return {"type": "object", PRESERVE: True, "x-dynamo-embedded.type": f"io.k8s.api.{name}"}


# Types that the inventory names without their fields.
EMBEDDED: dict[str, dict[str, Any]] = {
    "core/v1 PodTemplateSpec": embedded("core.v1.PodTemplateSpec"),
    "core/v1 PodSpec inline + mainContainer (core/v1 Container)": embedded("core.v1.PodSpec"),
    "core/v1 Probe": embedded("core.v1.Probe"),
    "autoscaling/v2 HorizontalPodAutoscalerBehavior": embedded("autoscaling.v2.HorizontalPodAutoscalerBehavior"),
    "batch/v1 JobSpec": embedded("batch.v1.JobSpec"),
    "[]core/v1 EnvVar": {"type": "array", "items": embedded("core.v1.EnvVar")},
    "[]core/v1 ResourceClaim": {"type": "array", "items": embedded("core.v1.ResourceClaim")},
    "[]core/v1 Toleration": {"type": "array", "items": embedded("core.v1.Toleration")},
    "[]autoscaling/v2 MetricSpec": {"type": "array", "items": embedded("autoscaling.v2.MetricSpec")},
    "[]meta/v1 Condition": {"type": "array"},
    "any": {PRESERVE: True},
}
WORDS = {
    "minLength": "minLength",
    "maxLength": "maxLength",
    "minimum": "minimum",
    "maximum": "maximum",
    "maxItems": "maxItems",
    "maxProperties": "maxProperties",
    "pattern": "pattern",
    "default": "default",
    "format": "format",
    "list-type": "x-kubernetes-list-type",
    "list-map-keys": "x-kubernetes-list-map-keys",
    "map-type": "x-kubernetes-map-type",
    "preserve-unknown-fields": PRESERVE,
    "int-or-string": "x-kubernetes-int-or-string",
    "type": "type",
}
# Additions. Behaviour, section 8: the identity of a checkpoint is immutable.
MORE_RULES = {("DynamoCheckpoint", "spec.identity"): ["self == oldSelf"]}
# Since 1.5 a checkpoint needs no name.
FEWER_RULES = "checkpoint"
# The reference's path names no field, so its column is always empty.
OTHER_PATHS = {("DynamoComponentDeployment", "DynamoComponent"): ".spec.serviceName"}
MORE_SHORT_NAMES = {"DynamoModel": ["dmodel"]}
# Graphs, so that admission can advise what to scale; components, because a standalone one scales like a Deployment.
MORE_SUBRESOURCES = {"DynamoGraphDeployment": ["scale"], "DynamoComponentDeployment": ["scale"]}
# The reference of 1.5 has these, too.
SINCE = ("runtimeVersionOverride", "roles", "minAvailable", "providerOverride")
POLICIES = tuple(f"checkpoint.{name}" for name in ("startupPolicy", "deletionPolicy", "targetContainerName", "job"))
SINCE_OF_ALPHA = (*SINCE, "gpuMemoryService.extraClientContainers", *POLICIES)
SINCE_OF_BETA = (
    *(
        *SINCE,
        # In no release yet.
        "compilationCache.subPath",
        "experimental.grove",
        "experimental.gpuMemoryService.extraClientContainers",
        "experimental.checkpoint.enabled",
    ),
    *(f"experimental.{name}" for name in POLICIES),
)
#: Of the status of each component.
SINCE_OF_STATUS = ("gpusPerEngine", "gpusPerReplica")
SINCE_OF_GRAPHS = ("spec.priorityClassName", "spec.experimental", "spec.providerOverride")
# Additions to the reference: results of profiling and hardware discovery, the writer of replicas, fields after 1.2.
MORE_FIELDS = {
    ("DynamoGraphDeployment", "v1alpha1"): (
        *SINCE_OF_GRAPHS,
        *(f"spec.services{{}}.{name}" for name in SINCE_OF_ALPHA),
        *(f"status.services{{}}.{name}" for name in SINCE_OF_STATUS),
    ),
    ("DynamoGraphDeployment", "v1beta1"): (
        *SINCE_OF_GRAPHS,
        *(f"spec.components[].{name}" for name in SINCE_OF_BETA),
        *(f"status.components{{}}.{name}" for name in SINCE_OF_STATUS),
    ),
    ("DynamoComponentDeployment", "v1alpha1"): (
        *(f"spec.{name}" for name in SINCE_OF_ALPHA),
        *(f"status.service.{name}" for name in SINCE_OF_STATUS),
    ),
    ("DynamoComponentDeployment", "v1beta1"): (
        *(f"spec.{name}" for name in SINCE_OF_BETA),
        *(f"status.component.{name}" for name in SINCE_OF_STATUS),
    ),
    ("DynamoGraphDeploymentScalingAdapter", "v1alpha1"): ("status.conditions",),
    ("DynamoGraphDeploymentScalingAdapter", "v1beta1"): ("status.conditions",),
    ("DynamoGraphDeploymentRequest", "v1alpha1"): ("spec.runtimeVersionOverride",),
    ("DynamoGraphDeploymentRequest", "v1beta1"): (
        "spec.features.kvRouter",
        "spec.overrides.trustRemoteCode",
        "spec.runtimeVersionOverride",
        "status.hardware",
        "status.profilingResults.pareto[].figures",
        "status.profilingResults.selectedFigures",
        "status.profilingResults.source",
    ),
}

ROWS = (
    [
        pytest.param(resource, row, id=f"{resource.kind}-{resource.version}-{row.path}")
        for resource in VERSIONS
        for row in inventory.table(resource).rows
    ]
    if HERE
    else []
)


def identify(resource: Resource) -> str:
    return f"{resource.kind}-{resource.version}"


def published(resource: Resource) -> dict[str, Any]:
    crd = next(each for each in crd_manifests() if each["spec"]["names"]["kind"] == resource.kind)
    return next(version for version in crd["spec"]["versions"] if version["name"] == resource.version)


def test_the_inventory_is_the_whole_one() -> None:
    assert len(ROWS) == 668


def parent_requires(schema: dict[str, Any], path: str) -> bool:
    parent, _, name = path.rpartition(".")
    return name in at(schema, parent).get("required", [])


def holds(node: dict[str, Any], expected: dict[str, Any]) -> bool:
    for key, value in expected.items():
        if key == "items":
            if not holds(node["items"], value):
                return False
        elif key == "x-dynamo-embedded.type":
            if node["x-dynamo-embedded"]["type"] != value:
                return False
        elif node[key] != value:
            return False
    return True


@pytest.mark.parametrize(("resource", "row"), ROWS)
def test_row(resource: Resource, row: Any) -> None:
    schema = schema_of(resource)
    node = at(schema, row.path)
    quantity = "x-kubernetes-int-or-string" in node
    if row.type in EMBEDDED:
        assert holds(node, EMBEDDED[row.type])
    elif row.type == "int-or-string":
        assert quantity
    elif row.type != "(element)":
        assert node["type"] == row.type
    if quantity:
        assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}]
        assert "type" not in node
    if row.type != "(element)":
        assert parent_requires(schema, row.path) == row.required
    for key, value in row.constraints.items():
        if key in ("enum", "required"):
            assert sorted(node[key]) == sorted(value), key
        else:
            assert node[WORDS[key]] == value, key
    rules = [rule["rule"] for rule in node.get("x-kubernetes-validations", [])]
    expected = [] if row.path.endswith(f".{FEWER_RULES}") else row.rules
    assert rules == expected + MORE_RULES.get((resource.kind, row.path), [])
    stated = {WORDS.get(key, key) for key in row.constraints} | set(EMBEDDED.get(row.type, {}))
    stated |= {"x-kubernetes-int-or-string"} if quantity else set()
    bounds = set(WORDS.values()) - {"type"} | {"enum"}
    assert set(node) & bounds <= stated, "bounds that the reference has not"


def is_more(resource: Resource, path: str) -> bool:
    prefixes = MORE_FIELDS.get((resource.kind, resource.version), ())
    return any(path == prefix or path.startswith((f"{prefix}.", f"{prefix}[]")) for prefix in prefixes)


def fields(schema: dict[str, Any], path: str, embedded: set[str]) -> list[str]:
    results = []
    for name, child in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        results.append(here)
        if here not in embedded:
            results += fields(child, here, embedded)
    if isinstance(schema.get("items"), dict):
        results += fields(schema["items"], f"{path}[]", embedded)
    if isinstance(schema.get("additionalProperties"), dict):
        results += fields(schema["additionalProperties"], f"{path}{{}}", embedded)
    return results


@pytest.mark.parametrize("resource", VERSIONS, ids=identify)
def test_there_is_no_field_outside_the_inventory(resource: Resource) -> None:
    rows = inventory.table(resource).rows
    embedded = {row.path for row in rows if row.type in EMBEDDED}
    results = set(fields(schema_of(resource), "", embedded)) - {"apiVersion", "kind", "metadata"}
    own = {path for path in results if not is_more(resource, path)}
    assert len(results) - len(own) >= len(MORE_FIELDS.get((resource.kind, resource.version), ()))
    assert own == {row.path for row in rows if not row.path.endswith(("[]", "{}"))}


@pytest.mark.parametrize("resource", VERSIONS, ids=identify)
def test_required_fields_have_rows(resource: Resource) -> None:
    """A field required by a list item or a map value has its own row; the CRDs require no more than the rows say."""
    rows = {row.path: row for row in inventory.table(resource).rows}
    for path, row in rows.items():
        node = at(schema_of(resource), path)
        if row.type == "object" and "properties" in node:
            listed = [name for name in node["properties"] if not is_more(resource, f"{path}.{name}")]
            needed = {name for name in listed if rows[f"{path}.{name}"].required}
            assert set(node.get("required", [])) == needed, path


@pytest.mark.parametrize("resource", VERSIONS, ids=identify)
def test_columns(resource: Resource) -> None:
    own = {column["name"]: column for column in published(resource)["additionalPrinterColumns"]}
    for name, path, kind in inventory.table(resource).columns:
        expected = OTHER_PATHS.get((resource.kind, name), path.replace("'", '"'))
        assert (own[name]["jsonPath"], own[name]["type"]) == (expected, kind)
        assert own[name]["description"]


def test_wide_output_has_the_reasons() -> None:
    """`kubectl get -o wide` answers why an object is not ready; the other output stays as narrow as the reference's."""
    wide = {
        each.kind: [
            column["name"] for column in published(each.resource)["additionalPrinterColumns"] if "priority" in column
        ]
        for each in DEFINITIONS
    }
    assert {kind: names for kind, names in wide.items() if names} == {
        "DynamoGraphDeployment": ["Reason", "Message"],
        "DynamoComponentDeployment": ["Reason", "Message"],
        "DynamoGraphDeploymentScalingAdapter": ["SYNCED", "AUTOSCALING"],
        "DynamoModel": ["Reason", "Message"],
    }


@pytest.mark.parametrize("resource", VERSIONS, ids=identify)
def test_versions_and_subresources(resource: Resource) -> None:
    table, own = inventory.table(resource), published(resource)
    assert own["served"] == table.served
    assert own.get("deprecated", False) == table.deprecated
    expected = {*table.subresources, *MORE_SUBRESOURCES.get(resource.kind, [])}
    assert set(own.get("subresources", {})) == expected
    if table.scale:
        assert own["subresources"]["scale"] == table.scale


@pytest.mark.parametrize("definition", [each for each in DEFINITIONS if each not in LEGACY], ids=lambda each: each.kind)
def test_names_and_the_stored_version(definition: Any) -> None:
    assert list(definition.short_names) == inventory.short_names(definition.resource) + MORE_SHORT_NAMES.get(
        definition.kind, []
    )
    # The reference still stores v1alpha1 of graphs, components and adapters; this project stores v1beta1 if it differs.
    newest = sorted(each.version for each in VERSIONS if each.kind == definition.kind)[-1]
    assert definition_of(definition.kind).resource.version == newest
