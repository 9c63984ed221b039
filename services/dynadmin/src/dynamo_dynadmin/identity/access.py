"""What a caller may do, as the API server's authorization says: asked before anything of STATE is shown."""

import time
from functools import partial
from typing import Any, NamedTuple

from dynamo_shared.aio import Joined
from dynamo_shared.api.resources import Resource
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reviews import review_access
from dynamo_shared.newest import Newest

from dynamo_dynadmin.identity.who import Caller

_ENTRIES = 16384


class ResourceAttributes(NamedTuple):
    """Something that is done with a resource. Without a namespace: in all of them; without a name: with all."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        what = f"{self.resource.id}/{self.subresource}" if self.subresource else self.resource.id
        where = f" in namespace {self.namespace}" if self.namespace else " in all namespaces"
        return f"{self.verb} {what}{where if self.resource.namespaced else ''}"


class AccessVerdict(NamedTuple):
    """Whether something is allowed, and what the API server says of it."""

    allowed: bool
    reason: str


class Access:
    """Asks with SubjectAccessReviews, and remembers answers for `keep` seconds."""

    def __init__(self, kube: KubeClient, keep: float) -> None:
        self._kube = kube
        self._keep = keep
        self._known: Newest[tuple[str, ResourceAttributes], tuple[float, AccessVerdict]] = Newest(_ENTRIES)
        self._asking: Joined[tuple[str, ResourceAttributes], AccessVerdict] = Joined()

    async def may(self, caller: Caller, act: ResourceAttributes, *, again: bool = False) -> AccessVerdict:
        """Whether the caller may. `again` asks even where an answer is remembered. Raises KubeError."""
        key = (caller.key, act)
        kept = self._known.get(key)
        if kept is not None and not again and time.monotonic() < kept[0]:
            return kept[1]
        # A page opens many streams at once, which need the same answer.
        verdict = await self._asking.result(key, partial(self._ask, caller, act))
        self._known[key] = (time.monotonic() + self._keep, verdict)
        return verdict

    async def _ask(self, caller: Caller, act: ResourceAttributes) -> AccessVerdict:
        identity = caller.identity
        attributes = {
            "verb": act.verb,
            "group": act.resource.group,
            "version": act.resource.version,
            "resource": act.resource.plural,
            "namespace": act.namespace,
            "name": act.name,
            "subresource": act.subresource,
        }
        spec: dict[str, Any] = {
            "user": identity.user,
            "uid": identity.uid,
            # What the API server adds when it authenticates or impersonates.
            "groups": [*identity.groups, *_added(identity.user, identity.groups)],
            "extra": {name: list(values) for name, values in identity.extra.items()},
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        }
        return AccessVerdict(*await review_access(self._kube, spec))


def _added(user: str, groups: tuple[str, ...]) -> list[str]:
    added = ["system:authenticated"]
    account = user.removeprefix("system:serviceaccount:")
    if account != user and not groups:
        added += ["system:serviceaccounts", f"system:serviceaccounts:{account.partition(':')[0]}"]
    return added
