"""Dynadmin's rights: it authenticates callers, checks their rights, and acts with them. It has no other rights.

If the API server constrains impersonation (KEP-5284), dynadmin may impersonate a user only for the requests in
AS_CALLERS. Service accounts stay unconstrained: that mode accepts only their name, without the extras of their tokens.
"""

from dynamo_shared.api import resources
from dynamo_shared.api.resources import Resource
from dynamo_shared.api.rights import Right, RightScope

from dynamo_dynadmin.api.kinds import KINDS
from dynamo_dynadmin.identity.rules import RULES_REVIEWS

_AUTHENTICATION = "authentication.k8s.io"
_FOR_CALLERS = "audit logs of tests name the caller of an impersonated request"

#: Values of the chart that choose between the two kinds of impersonation.
CONSTRAINED, UNCONSTRAINED = "constrainedImpersonation", "unconstrainedImpersonation"

#: Extras that the API server sets for service accounts' tokens. RBAC has no pattern for extras: those of other
#: authenticators need separate rules, and are never omitted, because they may narrow a user's rights.
EXTRAS = tuple(
    f"{_AUTHENTICATION.replace('k8s', 'kubernetes')}/{each}"
    for each in ("credential-id", "node-name", "node-uid", "pod-name", "pod-uid")
)

#: All requests that are sent as the caller.
AS_CALLERS = (
    *(
        Right(kind.resource, ("create", "delete", "get", "patch", "update") if kind.writable else ("get",))
        for kind in KINDS
    ),
    Right(resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, ("patch",), "scale"),
    Right(resources.CONFIG_MAPS, ("get",)),
    Right(resources.EVENTS, ("list", "watch")),
    Right(resources.NAMESPACES, ("list",)),
    Right(resources.PODS, ("list",)),
    Right(resources.RESOURCE_CLAIMS, ("list",)),
    Right(resources.PODS, ("get",), "log"),
    Right(resources.SERVICES, ("create", "get"), "proxy"),
    Right(RULES_REVIEWS, ("create",)),
)


def _identity(group: str, plural: str, verb: str, part: str = "") -> Right:
    resource = Resource(group, "v1", plural, "", namespaced=False)
    return Right(resource, (verb,), scope=RightScope.CLUSTER, part=part, unused=_FOR_CALLERS)


def _as_user(right: Right) -> Right:
    verbs = tuple(f"impersonate-on:user-info:{verb}" for verb in right.verbs)
    return Right(
        right.resource, verbs, right.subresource, scope=RightScope.CLUSTER, part=CONSTRAINED, unused=_FOR_CALLERS
    )


RIGHTS = (
    Right(resources.TOKEN_REVIEWS, ("create",), scope=RightScope.CLUSTER),
    Right(resources.ACCESS_REVIEWS, ("create",), scope=RightScope.CLUSTER),
    _identity("", "serviceaccounts", "impersonate"),
    *(
        _identity(_AUTHENTICATION, plural, "impersonate")
        for plural in ("uids", *(f"userextras/{each}" for each in EXTRAS))
    ),
    *(_identity("", plural, "impersonate", UNCONSTRAINED) for plural in ("users", "groups")),
    *(
        _identity(_AUTHENTICATION, plural, "impersonate:user-info", CONSTRAINED)
        for plural in ("users", "groups", "uids")
    ),
    *(_as_user(right) for right in AS_CALLERS),
)
