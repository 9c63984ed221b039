"""The generated CRDs: small, structural, explained, and the same as what is packaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from dynamo_shared.api import generate, resources
from dynamo_shared.api.crds import crd_files, crd_manifests
from dynamo_shared.api.crds.build import DEFINITIONS, build, schema_of
from dynamo_shared.api.crds.structural import structural_schema
from dynamo_shared.api.rules import twin
from pydantic import BaseModel, Field

ROOT = Path(__file__).resolve().parents[3]
CRDS = {crd["spec"]["names"]["kind"]: crd for crd in crd_manifests()}


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], path + mark)


def test_packaged_files_are_what_the_types_say() -> None:
    assert generate.main(["--check", "--root", str(ROOT)]) == 0
    built = [build(definition) for definition in DEFINITIONS]
    assert sorted(crd_manifests(), key=str) == sorted(built, key=str)


def test_a_file_that_differs_is_named_and_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "pyproject.toml").touch()
    assert generate.main(["--check", "--root", str(tmp_path)]) == 1
    assert "differs: docs/registry.md" in capsys.readouterr().out
    assert not (tmp_path / "docs").exists()
    assert generate.main(["--root", str(tmp_path)]) == 0
    assert generate.main(["--check", "--root", str(tmp_path)]) == 0


def test_only_a_checkout_is_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        generate.main(["--root", str(tmp_path)])
    assert "no checkout" in capsys.readouterr().err


@pytest.mark.parametrize("text", crd_files().values(), ids=crd_files().keys())
def test_a_crd_is_far_from_the_limits_of_charts_and_client_side_apply(text: str) -> None:
    assert len(text) < 100_000
    assert "&id" not in text, "anchors make a CRD unreadable"


def test_names_and_columns() -> None:
    graph, component = CRDS["DynamoGraphDeployment"]["spec"], CRDS["DynamoComponentDeployment"]["spec"]
    assert graph["names"]["shortNames"] == ["dgd"]
    assert component["names"]["shortNames"] == ["dcd"]
    for spec, columns in ((graph, ["Ready", "State", "Backend", "Age"]), (component, ["Available", "Backend", "Age"])):
        assert spec["names"]["categories"] == ["dynamo"]
        assert spec["scope"] == "Namespaced"
        (version,) = spec["versions"]
        assert (version["name"], version["served"], version["storage"]) == ("v1beta1", True, True)
        assert version["subresources"]["status"] == {}
        assert [column["name"] for column in version["additionalPrinterColumns"]] == columns


def test_a_component_can_be_scaled_and_a_graph_of_several_cannot() -> None:
    graph, component = CRDS["DynamoGraphDeployment"]["spec"], CRDS["DynamoComponentDeployment"]["spec"]
    assert "scale" not in graph["versions"][0]["subresources"]
    assert component["versions"][0]["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.component.replicas",
    }


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)
def test_schema_is_structural_and_explained(definition: Any) -> None:
    for path, node in (each for version in definition.versions for each in nodes(schema_of(version.resource))):
        typed = (
            "type" in node or node.get("x-kubernetes-int-or-string") or "x-kubernetes-preserve-unknown-fields" in node
        )
        assert typed, path
        assert not {"$ref", "allOf", "oneOf", "nullable", "title"} & set(node), path
        assert not ("properties" in node and "additionalProperties" in node), path
        if path not in ("", ".metadata") and not path.endswith(("[]", "{}")):
            assert node.get("description", "").endswith("."), f"{path} is not explained"
            assert len(node["description"]) <= 120, path
        for rule in node.get("x-kubernetes-validations", []):
            assert twin(rule["rule"]).message == rule["message"]


def test_embedded_kubernetes_types_are_small() -> None:
    schema = schema_of(resources.DYNAMO_GRAPH_DEPLOYMENTS)
    spec, status = schema["properties"]["spec"], schema["properties"]["status"]
    template = spec["properties"]["components"]["items"]["properties"]["podTemplate"]
    assert set(template) == {"type", "description", "x-kubernetes-preserve-unknown-fields", "x-dynamo-embedded"}
    assert template["x-dynamo-embedded"] == {
        "type": "io.k8s.api.core.v1.PodTemplateSpec",
        "optional": ["spec.containers"],
    }
    variable = spec["properties"]["env"]["items"]
    assert set(variable) == {"type", "x-kubernetes-preserve-unknown-fields", "x-dynamo-embedded"}
    assert variable["x-dynamo-embedded"]["type"] == "io.k8s.api.core.v1.EnvVar"
    condition = status["properties"]["conditions"]["items"]
    assert condition["required"] == ["type", "status", "lastTransitionTime", "reason", "message"]
    assert condition["properties"]["status"]["enum"] == ["True", "False", "Unknown"]
    assert condition["properties"]["reason"]["maxLength"] == 1024


def test_every_manifest_is_its_own() -> None:
    crd_manifests()[0]["metadata"]["name"] = "changed"
    assert crd_manifests()[0]["metadata"]["name"] != "changed"


def test_files_are_sorted_and_say_that_they_are_generated() -> None:
    assert list(crd_files()) == sorted(crd_files())
    for text in crd_files().values():
        assert text.startswith("# Generated from")
        assert yaml.safe_load(text)["apiVersion"] == "apiextensions.k8s.io/v1"


class _Choice(BaseModel):
    either: int | str


class _AnyMap(BaseModel):
    anything: dict[str, Any]


class _Open(BaseModel):
    above: Annotated[int, Field(gt=0)]


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (_Choice, "_Choice.either: a choice"),
        (_AnyMap, "_AnyMap.anything: a map"),
        (_Open, "_Open.above: exclusiveMinimum"),
    ],
)
def test_what_has_no_structural_form_is_refused(model: type[BaseModel], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        structural_schema(model)
