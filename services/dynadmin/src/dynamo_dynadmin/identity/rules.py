"""The caller's rights in a namespace with one request: a SelfSubjectRulesReview, sent with the caller's identity.

The rules are complete only if every authorizer of the API server lists its rules. An authorizer that cannot list them,
such as a webhook, may also deny what other rules grant: then the rules are not used.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynamo_shared.api.resources import ACCESS_REVIEWS, Resource
from dynamo_shared.kube import Forbidden, KubeClient
from dynamo_shared.kube.errors import ResponseTooLarge

RULES_REVIEWS = Resource(
    ACCESS_REVIEWS.group, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
)
#: Limits of rules, and of names in all rules: a user who may write roles may write a million of them, and each act is
#: compared with each rule.
_MOST_RULES, _MOST_NAMES = 4000, 20_000
_Rule = Mapping[str, Any]


async def review_rules(kube: KubeClient, namespace: str) -> Sequence[_Rule] | None:
    """Rules for the user of `kube` in a namespace; None if they are incomplete or too many, or if the review is
    forbidden.

    Raises KubeError.
    """
    review = {**RULES_REVIEWS.type_meta, "metadata": {}, "spec": {"namespace": namespace}}
    try:
        status = (await kube.create(RULES_REVIEWS, review)).get("status") or {}
    except (Forbidden, ResponseTooLarge):
        return None
    rules = status.get("resourceRules")
    if status.get("incomplete") or status.get("evaluationError") or rules is None or len(rules) > _MOST_RULES:
        return None
    return rules if sum(len(names or ()) for rule in rules for names in rule.values()) <= _MOST_NAMES else None


def grants(rules: Iterable[_Rule], verb: str, resource: Resource, *, subresource: str = "", name: str = "") -> bool:
    """Whether any rule grants it, compared as the API server does (pkg/apis/rbac/v1/evaluation_helpers.go)."""
    plurals = (f"{resource.plural}/{subresource}", f"*/{subresource}") if subresource else (resource.plural,)
    return any(
        _has(rule, "verbs", verb)
        and _has(rule, "apiGroups", resource.group)
        and _has(rule, "resources", *plurals)
        and (not (only := rule.get("resourceNames")) or name in only)
        for rule in rules
    )


def _has(rule: _Rule, field: str, *values: str) -> bool:
    names = rule.get(field) or ()
    return "*" in names or any(each in names for each in values)
