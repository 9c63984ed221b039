"""What the API server holds to without publishing it, by the types of its OpenAPI documents."""

from collections.abc import Iterable

from dynamo_shared.api.embedded.composites import ObjectRule
from dynamo_shared.api.embedded.findings import Check
from dynamo_shared.api.embedded.rules.fields import FIELD_RULES
from dynamo_shared.api.embedded.rules.objects import OBJECT_RULES
from dynamo_shared.api.embedded.rules.published import NOT_REQUIRED, REPEATABLE, REQUIRED


def field_rule(owner: str, field: str) -> Check | None:
    """Rule of a field of a type, for values of the type that is published."""
    return FIELD_RULES.get((owner, field))


def object_rules(owner: str) -> tuple[ObjectRule, ...]:
    """Rules between the fields of a type."""
    return OBJECT_RULES.get(owner, ())


def required_fields(owner: str, published: Iterable[str]) -> list[str]:
    """Fields without which the API server refuses an object of a type, from those that are published as required."""
    never = NOT_REQUIRED.get(owner, ())
    return [*(field for field in published if field not in never), *REQUIRED.get(owner, ())]


def repeatable(owner: str, field: str) -> bool:
    """Whether the items of a list with keys may repeat them."""
    return (owner, field) in REPEATABLE
