"""The generated CRDs: small, structural, described, and equal to the packaged files."""

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from dynamo_shared.api import deprecations, resources
from dynamo_shared.api.crds import crd_files, crd_manifests
from dynamo_shared.api.crds.build import at, definition_of, schema_of
from dynamo_shared.api.crds.definition import Definition, VersionDefinition
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.crds.structural import structural_schema
from dynamo_shared.api.rules import rule_of
from pydantic import BaseModel, Field

from tools.generate import api
from tools.generate.__main__ import main
from tools.generate.files import Generator, run

CRDS = {crd["spec"]["names"]["kind"]: crd for crd in crd_manifests()}


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], path + mark)


def test_a_different_file_is_named_and_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generators = [Generator("api", api.outputs, api.FOLDERS)]
    assert run(generators, tmp_path, check=True) == 1
    assert "api/crds/nvidia.com_dynamomodels.yaml" in capsys.readouterr().out
    assert not (tmp_path / "docs").exists()
    assert run(generators, tmp_path, check=False) == 0
    assert run(generators, tmp_path, check=True) == 0


def test_only_a_checkout_is_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--root", str(tmp_path)])
    assert "not a checkout" in capsys.readouterr().err


@pytest.mark.parametrize("text", crd_files().values(), ids=crd_files().keys())
def test_a_crd_is_far_below_the_limits_of_charts_and_client_side_apply(text: str) -> None:
    assert len(text) < 200_000
    assert "&id" not in text, "anchors make a CRD unreadable"


def test_all_crds_fit_into_one_helm_release() -> None:
    """A release is a Secret of at most 1 MiB, in which Helm keeps a chart as base64 of compressed JSON."""
    together = "".join(crd_files().values()).encode()
    assert len(together) < 1_000_000
    as_stored = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(crd_manifests()).encode(), 9)))
    assert len(as_stored) < 100_000


VERSIONS = [version for definition in DEFINITIONS for version in definition.versions]


def version_id(version: VersionDefinition) -> str:
    return f"{version.resource.kind}-{version.resource.version}"


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)
def test_the_stored_version_is_the_newest_one_with_a_different_schema(definition: Definition) -> None:
    spec = CRDS[definition.kind]["spec"]
    assert spec["names"]["categories"] == ["dynamo"]
    assert spec["scope"] == "Namespaced"
    assert all(version["served"] for version in spec["versions"])
    differing = spec["versions"] if definition.is_converted else spec["versions"][:1]
    assert [version["name"] for version in spec["versions"] if version["storage"]] == [differing[-1]["name"]]
    assert definition_of(definition.kind) is definition
    assert definition.resource in resources.ALL, "resources.py names the stored version"


def test_versions_are_converted_by_the_platform_and_never_pruned_into_each_other() -> None:
    for crd in CRDS.values():
        conversion = crd["spec"].get("conversion")
        if not definition_of(crd["spec"]["names"]["kind"]).is_converted:
            assert conversion is None
            stored, *others = ({**version, "name": "", "storage": True} for version in crd["spec"]["versions"])
            for each in others:
                # The only text that names the version.
                del each["schema"]["openAPIV3Schema"]["properties"]["apiVersion"]
                stored["schema"]["openAPIV3Schema"]["properties"].pop("apiVersion", None)
                assert each == stored
            continue
        assert conversion["strategy"] == "Webhook"
        assert conversion["webhook"]["conversionReviewVersions"] == ["v1"]
        assert conversion["webhook"]["clientConfig"]["service"]["path"] == "/convert"


@pytest.mark.parametrize("version", VERSIONS, ids=version_id)
def test_deprecated_versions_name_their_successor(version: VersionDefinition) -> None:
    resource = version.resource
    built = next(each for each in CRDS[resource.kind]["spec"]["versions"] if each["name"] == resource.version)
    entries = deprecations.of(resource.kind, resource.version)
    whole = [entry for entry in entries if not entry.path]
    assert built.get("deprecated", False) == bool(whole)
    if whole:
        assert whole[0].replacement in built["deprecationWarning"]
        assert len(built["deprecationWarning"]) <= 256, "the API server takes no more"
    for entry in entries:
        node = at(built["schema"]["openAPIV3Schema"], entry.path)
        assert node["description"].endswith(deprecations.note(entry))


def test_unknown_kinds_and_versions_have_no_schema() -> None:
    for resource in (
        resources.DEPLOYMENTS,
        resources.DYNAMO_MODELS.at("v1"),
        replace(resources.DYNAMO_MODELS, group="example.com"),
    ):
        with pytest.raises(KeyError):
            schema_of(resource)


def test_crds_have_no_internal_markers() -> None:
    assert "x-dynamo" in json.dumps(schema_of(resources.DYNAMO_GRAPH_DEPLOYMENTS))
    assert "x-dynamo" not in json.dumps(crd_manifests())


@pytest.mark.parametrize("version", VERSIONS, ids=version_id)
def test_schema_is_structural_and_explained(version: VersionDefinition) -> None:
    for path, node in nodes(schema_of(version.resource)):
        typed = (
            "type" in node or node.get("x-kubernetes-int-or-string") or "x-kubernetes-preserve-unknown-fields" in node
        )
        assert typed, path
        assert not {"$ref", "allOf", "oneOf", "nullable", "title"} & set(node), path
        assert not ("properties" in node and "additionalProperties" in node), path
        if path not in ("", ".metadata") and not path.endswith(("[]", "{}")):
            assert node.get("description", "").endswith("."), f"{path} is not explained"
            assert len(node["description"]) <= 320, path
        for rule in node.get("x-kubernetes-validations", []):
            assert rule_of(rule["rule"]).message == rule["message"]


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


def test_each_call_returns_a_new_manifest() -> None:
    crd_manifests()[0]["metadata"]["name"] = "changed"
    assert crd_manifests()[0]["metadata"]["name"] != "changed"


def test_files_are_sorted_and_say_that_they_are_generated() -> None:
    assert list(crd_files()) == sorted(crd_files())
    for text in crd_files().values():
        assert text.startswith("# Generated from")
        assert yaml.load(text, yaml.CSafeLoader)["apiVersion"] == "apiextensions.k8s.io/v1"


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
def test_a_type_without_a_structural_schema_is_rejected(model: type[BaseModel], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        structural_schema(model)
