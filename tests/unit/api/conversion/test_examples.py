"""Examples of other kinds than graphs: each is valid, and equivalent in both versions if it has two."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.manifest import load_manifests
from dynamo_shared.api.model import to_dict

EXAMPLES = Path(__file__).parents[4] / "examples"
FILES = sorted((EXAMPLES / "resources").glob("*.yaml"))
OLD = sorted((EXAMPLES / "v1alpha1" / "resources").glob("*.yaml"))


def with_defaults(file: Path) -> list[dict[str, Any]]:
    """Objects of a file with the defaults of an API server."""
    return [each if isinstance(each, dict) else to_dict(each) for each in load_manifests(file.read_text())]


@pytest.mark.parametrize("file", [*FILES, *OLD], ids=lambda file: f"{file.parent.parent.name}-{file.stem}")
def test_an_example_is_valid_and_begins_with_its_purpose(file: Path) -> None:
    assert file.read_text().startswith("# ")
    assert with_defaults(file)


@pytest.mark.parametrize("file", OLD, ids=lambda file: file.stem)
def test_an_example_is_equivalent_in_the_old_version(file: Path) -> None:
    new = with_defaults(EXAMPLES / "resources" / file.name)
    old = with_defaults(file)
    assert convert(old[0], "nvidia.com/v1beta1") == new[0]
    assert convert(new[0], "nvidia.com/v1alpha1") == old[0]
    assert [each["kind"] for each in new] == [each["kind"] for each in old]


def test_every_kind_for_users_has_an_example() -> None:
    kinds = {each["kind"] for file in FILES for each in yaml.safe_load_all(file.read_text())}
    assert kinds == {
        "DynamoGraphDeploymentScalingAdapter",
        "HorizontalPodAutoscaler",
        "DynamoGraphDeploymentRequest",
        "DynamoModel",
        "DynamoCheckpoint",
    }
    assert {file.name for file in OLD} == {"request.yaml", "scaling-adapter.yaml"}
