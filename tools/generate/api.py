"""CRDs, schemas of contracts, and the pages of docs/reference that are generated from the API's types."""

from pathlib import Path

from dynamo_shared.api.crds.kinds import DEFINITIONS

from tools.generate import reference, validation
from tools.generate.crds import build, file_name
from tools.generate.files import yaml_text

_HEADER = "# Generated from dynamo_shared.api by `make generate`. Do not edit.\n"

FOLDERS = (
    ("docs/reference/kinds", "*.md"),
    ("proto/schemas/contracts", "*.json"),
    ("helm/dynamo-crds/definitions", "*.yaml"),
)


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below the root of a checkout, with its content."""
    # The package includes them for `dynamoctl crds`; a chart can only read files in its own folder.
    folders = (
        root / "shared" / "src" / "dynamo_shared" / "api" / "crds",
        root / "helm" / "dynamo-crds" / "definitions",
    )
    texts = {
        folder / file_name(definition): _HEADER + yaml_text(build(definition))
        for definition in DEFINITIONS
        for folder in folders
    }
    rules = {root / "docs" / "validation.md": validation.text()}
    return texts | reference.outputs(root) | rules
