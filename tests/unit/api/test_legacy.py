"""The kinds from before graphs match the page that documented them: its tables and its examples."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_shared.api import legacy, resources
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.manifest import load_manifest, schema_errors
from dynamo_shared.api.model import to_dict

_PAGES = sorted((Path(__file__).resolve().parents[4] / "shared" / "seeds").glob("003_*.txt"))
PAGE = _PAGES[0].read_text() if _PAGES else ""
pytestmark = pytest.mark.skipif(not PAGE, reason="the page of the old kinds (../shared/seeds/003_*) is not here")

KINDS = {
    "DynamoDeployment": resources.DYNAMO_DEPLOYMENTS,
    "DynamoNimDeployment": resources.DYNAMO_NIM_DEPLOYMENTS,
    "DynamoNimRequest": resources.DYNAMO_NIM_REQUESTS,
}
TYPES = {"string": "string", "map": "object", "array": "array", "object": "object", "int": "integer"}
# In the examples, but in no table.
EXAMPLES_ONLY = {"DynamoDeployment": {"envs"}}


def section(kind: str) -> str:
    match = re.search(rf"### CRD: `{kind}`(.*?)\n---\n", PAGE, re.DOTALL)
    return match.group(1) if match else ""


def rows(kind: str) -> dict[str, tuple[str, bool, str]]:
    """The fields of a table: type, whether required, default."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section(kind).splitlines() if "| `" in line]
    return {cell[0].strip("`"): (cell[1], cell[3] == "Yes", cell[4]) for cell in cells}


@pytest.mark.parametrize("kind", KINDS)
def test_fields_match_the_page(kind: str) -> None:
    spec: dict[str, Any] = schema_of(KINDS[kind])["properties"]["spec"]
    documented = rows(kind)
    assert set(spec["properties"]) == set(documented) | EXAMPLES_ONLY.get(kind, set())
    for name, (kind_of_value, required, default) in documented.items():
        node = spec["properties"][name]
        assert node["type"] == TYPES[kind_of_value]
        assert (name in spec.get("required", [])) == required
        if default:
            assert node["default"] == yaml.safe_load(default)
    assert "conditions" in schema_of(KINDS[kind])["properties"]["status"]["properties"]


def test_the_overall_state_is_reported() -> None:
    assert "state" in schema_of(resources.DYNAMO_DEPLOYMENTS)["properties"]["status"]["properties"]


@pytest.mark.parametrize("kind", KINDS)
def test_examples_load(kind: str) -> None:
    example = re.search(r"```yaml\n(.*?)```", section(kind), re.DOTALL)
    assert example
    written = yaml.safe_load(example.group(1))
    assert schema_errors(written) == []
    loaded = load_manifest(written)
    assert isinstance(loaded, getattr(legacy, kind))
    kept = to_dict(loaded)["spec"]
    assert {name: kept[name] for name in written["spec"]} == written["spec"]
