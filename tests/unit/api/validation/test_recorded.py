"""Validation accepts and refuses the same examples as the reference.

Examples that the reference accepts but cannot run are accepted, too; this platform runs them.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from dynamo_shared.api.defaults import default
from dynamo_shared.api.validation import Facts, validate

RECORDS = Path(__file__).parents[5] / "shared" / "conformance"
FILES = sorted([*RECORDS.glob("cases/*/*.json"), *RECORDS.glob("must-run/*.json")])
#: Where we differ on purpose, by file and object, with the reason. There is nothing at present.
DIFFERENT: dict[tuple[str, str], str] = {}

pytestmark = pytest.mark.skipif(not FILES, reason="the recorded cases are not next to this checkout")


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_findings_equal_the_recorded_ones(file: Path) -> None:
    case = json.loads(file.read_text(encoding="utf-8"))
    facts = Facts(user="jane", grove=file.parent.name == "grove", inference_pools=True)
    accepted = {(each["kind"], each["name"]): each["accepted"] for each in case.get("admission") or ()}
    for manifest in case["input"]:
        if not manifest["apiVersion"].startswith("nvidia.com/"):
            continue
        name = manifest["metadata"]["name"]
        expected = accepted.get((manifest["kind"], name), True)
        result = validate(_created(manifest), None, facts)
        if (file.stem, name) in DIFFERENT:
            expected = not expected
        assert (not result.errors) is expected, result.errors


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_updates_without_a_change_are_accepted(file: Path) -> None:
    facts = Facts(user="jane", grove=True, inference_pools=True)
    for manifest in json.loads(file.read_text(encoding="utf-8"))["input"]:
        stored = _created(manifest)
        assert validate(stored, stored, facts).errors == ()


def _created(manifest: dict[str, Any]) -> dict[str, Any]:
    placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": "case-namespace"}}
    return default(placed, platform_version="1.2.0")
