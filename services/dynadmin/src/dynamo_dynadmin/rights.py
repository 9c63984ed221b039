"""What dynadmin may do: ask who calls and what the caller may, and act with the caller's rights. Nothing else is its own."""

from __future__ import annotations

from dynamo_shared.api.resources import ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from dynamo_shared.api.rights import Place, Right

_AUTHENTICATION = "authentication.k8s.io"
_FOR_CALLERS = "audit logs of tests name the caller of an impersonated request"

#: What the API server says besides of service accounts' tokens. RBAC has no pattern for extras: those of other
#: authenticators need rules of their own, and are never left out, since they may narrow a user's rights.
EXTRAS = tuple(
    f"{_AUTHENTICATION.replace('k8s', 'kubernetes')}/{each}"
    for each in ("credential-id", "node-name", "node-uid", "pod-name", "pod-uid")
)


def _identities(group: str, plural: str) -> Resource:
    return Resource(group, "v1", plural, "", namespaced=False)


RIGHTS = (
    Right(TOKEN_REVIEWS, ("create",), place=Place.CLUSTER),
    Right(ACCESS_REVIEWS, ("create",), place=Place.CLUSTER),
    *(
        Right(_identities("", plural), ("impersonate",), place=Place.CLUSTER, unused=_FOR_CALLERS)
        for plural in ("users", "groups", "serviceaccounts")
    ),
    *(
        Right(_identities(_AUTHENTICATION, plural), ("impersonate",), place=Place.CLUSTER, unused=_FOR_CALLERS)
        for plural in ("uids", *(f"userextras/{each}" for each in EXTRAS))
    ),
)
