"""The examples are what a newcomer applies first: admission neither refuses them nor warns of them."""

from pathlib import Path

import pytest
import yaml
from dynamo_shared.api.defaults import default
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.resources import GROUP
from dynamo_shared.api.validation import Facts, validate

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.rglob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(EXAMPLES).as_posix())
def test_an_example_is_neither_refused_nor_without_effect(file: Path) -> None:
    for each in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        if not each["apiVersion"].startswith(GROUP):
            continue
        obj = default(each, platform_version="1.2.0")
        result = validate(obj, None, Facts())
        assert [str(error) for error in (*schema_errors(obj), *result.errors)] == []
        warnings = [str(warning) for warning in result.warnings]
        # Those of v1alpha1 are warned of as deprecated, which is what they are there for.
        assert [warning for warning in warnings if "v1alpha1" not in file.parts or "has no effect" in warning] == []
