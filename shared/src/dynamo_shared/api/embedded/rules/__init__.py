"""Rules that the API server enforces without publishing them, by the types of its OpenAPI documents."""

from collections.abc import Iterable

from dynamo_shared.api.embedded.composites import ObjectRule
from dynamo_shared.api.embedded.findings import Check
from dynamo_shared.api.embedded.rules.fields import FIELD_RULES
from dynamo_shared.api.embedded.rules.objects import OBJECT_RULES
from dynamo_shared.api.embedded.rules.published import NOT_REQUIRED, REPEATABLE, REQUIRED


def field_rule(owner: str, field: str) -> Check | None:
    """The rule of a field of a type, for values of the published type."""
    return FIELD_RULES.get((owner, field))


def object_rules(owner: str) -> tuple[ObjectRule, ...]:
    """The rules between the fields of a type."""
    return OBJECT_RULES.get(owner, ())


def required_fields(owner: str, published: Iterable[str]) -> list[str]:
    """The required fields of a type, from those that are published as required."""
    never = NOT_REQUIRED.get(owner, ())
    return [*(field for field in published if field not in never), *REQUIRED.get(owner, ())]


def repeatable(owner: str, field: str) -> bool:
    """Whether items of a list may have the same key."""
    return (owner, field) in REPEATABLE
