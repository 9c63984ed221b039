"""Kinds that require a spec. Their schemas, like the reference's, require fields of the spec, but not the spec itself."""

from typing import Any

from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ADAPTER, CHECKPOINT, MODEL, REQUEST, RuleSet, Violations, broken

SPECIFIED = RuleSet("Specs", (REQUEST, MODEL, CHECKPOINT, ADAPTER))


@SPECIFIED.rule("required, and missing", added=True)
def objects_have_a_spec(obj: dict[str, Any], _facts: Facts) -> Violations:
    """A request, a model, a checkpoint and an adapter require a spec."""
    if obj.get("spec") is None:
        yield broken(("spec",))
