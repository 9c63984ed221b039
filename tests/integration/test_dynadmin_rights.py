"""Rights that dynadmin computes from rules equal the access reviews of a real API server, act by act."""

import itertools
import uuid
from typing import Any

from dynamo_dynadmin.api.kinds import KINDS
from dynamo_dynadmin.identity.access import Access, ResourceAttributes
from dynamo_dynadmin.identity.rules import review_rules
from dynamo_dynadmin.identity.who import Caller, identity_of
from dynamo_shared.api.resources import EVENTS, NODES, PODS, SERVICES
from dynamo_shared.kube import KubeClient

from .dynadmin import account, cluster_wide

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
#: Roles as people write them, including bad ones.
ROLES: dict[str, list[dict[str, Any]]] = {
    "reader": [{"verbs": ["get", "list", "watch"], "apiGroups": ["nvidia.com"], "resources": ["*"]}],
    "admin": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "named": [
        {
            "verbs": ["get", "list", "delete"],
            "apiGroups": ["nvidia.com"],
            "resources": ["dynamographdeployments"],
            "resourceNames": ["one"],
        }
    ],
    "parts": [
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log", "services/*"]},
        {"verbs": ["create"], "apiGroups": ["*"], "resources": ["*/proxy"]},
        {"verbs": ["list"], "apiGroups": ["", "events.k8s.io"], "resources": ["events", "nodes"]},
        {"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["dynamographdeployments"]},
    ],
    "nothing": [],
}


def acts(namespace: str) -> dict[Any, ResourceAttributes]:
    """All acts that the page checks, and more."""
    everything = [
        *(
            ResourceAttributes(verb, kind.resource, namespace, name)
            for kind, verb, name in itertools.product(KINDS, VERBS, ("", "one"))
        ),
        *(ResourceAttributes(verb, EVENTS, namespace) for verb in VERBS),
        ResourceAttributes("get", PODS, namespace, subresource="log"),
        ResourceAttributes("get", SERVICES, namespace),
        ResourceAttributes("get", SERVICES, namespace, subresource="proxy"),
        ResourceAttributes("create", SERVICES, namespace, subresource="proxy"),
        ResourceAttributes("list", NODES),
    ]
    return {str(number): each for number, each in enumerate(everything)}


async def test_rules_grant_what_reviews_allow(kube: KubeClient, namespace: str) -> None:
    asked = acts(namespace)
    for name, rules in ROLES.items():
        await account(kube, namespace, name, *rules)
    await cluster_wide(kube, namespace, "parts", {"verbs": ["list"], "apiGroups": [""], "resources": ["nodes"]})
    for name in ROLES:
        caller = Caller(identity_of(f"system:serviceaccount:{namespace}:{name}"))
        client = kube.for_identity(caller.identity, request=str(uuid.uuid4()), field_manager="dynamo-tests")
        assert await review_rules(client, namespace) is not None, "the rules of RBAC say all"
        by_rules = await Access(kube, 60.0).allowed(caller, client, namespace, asked)
        reviews = Access(kube, 60.0)
        one_by_one = {key: (await reviews.may(caller, act)).allowed for key, act in asked.items()}
        differing = [str(asked[key]) for key in asked if by_rules[key] != one_by_one[key]]
        assert not differing, (name, differing)
