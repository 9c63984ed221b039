"""The caller's rights, according to the API server's authorization; checked before any part of STATE is shown."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from dynamo_shared.aio import Joined, Lanes
from dynamo_shared.api.resources import Resource
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reviews import review_access
from dynamo_shared.lru import LaneLruCache

from dynamo_dynadmin.identity.rules import grants, review_rules
from dynamo_dynadmin.identity.who import Caller

_ENTRIES = 16384
#: Concurrent reviews when many are needed: of one user, and of all users, who take turns.
_EACH_AT_ONCE, _ALL_AT_ONCE = 8, 32
#: Pairs of caller and act whose answers per namespace are remembered: each has thousands of answers in a large cluster.
_OF_NAMESPACES = 64
#: Extras that the API server itself sets. Other extras may narrow what roles grant, and rules do not show it: OpenShift
#: uses them for the scopes of a token, with an authorizer that only denies and lists no rules (its
#: openshift-kube-apiserver/authorization/scopeauthorizer).
_PLAIN_EXTRAS = "authentication.kubernetes.io/"

K = TypeVar("K")


class ResourceAttributes(NamedTuple):
    """An act on a resource. Without a namespace: in all namespaces; without a name: on all objects."""

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
    """Whether the act is allowed, and the API server's reason."""

    allowed: bool
    reason: str


@dataclass(slots=True)
class _Places:
    """Whether a caller may do an act, by namespace, and until when the answers are valid."""

    until: float
    verdicts: dict[str, bool] = field(default_factory=dict)


class Access:
    """Checks rights with SubjectAccessReviews, or with one review of rules for many acts, and remembers answers for
    `keep` seconds. A user with many tokens, acts or reviews displaces and delays only their own.
    """

    def __init__(self, kube: KubeClient, keep: float) -> None:
        self._kube = kube
        self._keep = keep
        self._known: LaneLruCache[tuple[str, ResourceAttributes], tuple[float, AccessVerdict]] = LaneLruCache(_ENTRIES)
        self._asking: Joined[tuple[str, ResourceAttributes], AccessVerdict] = Joined()
        self._places: LaneLruCache[tuple[str, ResourceAttributes], _Places] = LaneLruCache(_OF_NAMESPACES)
        self._asking_places: Joined[tuple[str, ResourceAttributes], None] = Joined()
        self._slots = Lanes(_ALL_AT_ONCE, of_one=_EACH_AT_ONCE)

    async def may(self, caller: Caller, act: ResourceAttributes, *, again: bool = False) -> AccessVerdict:
        """Whether the caller may do the act. `again` asks the API server even if an answer is remembered. Raises
        KubeError.
        """
        if not again and (kept := self._remembered(caller, act)) is not None:
            return kept
        # A page opens many streams at once, and all need the same answer.
        verdict = await self._asking.result((caller.key, act), partial(self._ask, caller, act))
        self._remember(caller, act, verdict)
        return verdict

    async def allowed(
        self, caller: Caller, kube: KubeClient, namespace: str, acts: Mapping[K, ResourceAttributes]
    ) -> dict[K, bool]:
        """Which acts the caller may do, by their keys. Raises KubeError.

        `kube` has the caller's rights: one review of rules answers for all acts in the namespace. If that review is
        incomplete, and for acts in other namespaces or in the whole cluster, each act has its own review.
        """
        is_plain = all(name.startswith(_PLAIN_EXTRAS) for name in caller.identity.extra)
        unknown = any(act.namespace == namespace and self._remembered(caller, act) is None for act in acts.values())
        if is_plain and unknown:
            await self._take_rules(caller, kube, namespace, acts.values())
        verdicts: dict[K, bool] = {}

        async def ask(key: K) -> None:
            verdicts[key] = (await self.may(caller, acts[key])).allowed

        await self._each(caller, acts, ask)
        return verdicts

    async def _take_rules(
        self, caller: Caller, kube: KubeClient, namespace: str, acts: Iterable[ResourceAttributes]
    ) -> None:
        if (rules := await review_rules(kube, namespace)) is None:
            return
        for act in acts:
            if act.namespace == namespace:
                may = grants(rules, act.verb, act.resource, subresource=act.subresource, name=act.name)
                self._remember(caller, act, AccessVerdict(may, ""))

    async def where(self, caller: Caller, act: ResourceAttributes, namespaces: Collection[str]) -> list[str]:
        """The namespaces, of those given, in which the caller may do `act`, which names no namespace. Raises KubeError.

        A caller who may do it in all namespaces may do it in each. For other callers, each namespace has its own
        review.
        """
        if (await self.may(caller, act)).allowed:
            return sorted(namespaces)
        key = (caller.key, act)
        places = self._places.touch(caller.limit_key, key)
        if places is None or time.monotonic() >= places.until:
            places = _Places(time.monotonic() + self._keep)
            self._places.put(caller.limit_key, key, places)
        while missing := [each for each in namespaces if each not in places.verdicts]:
            await self._asking_places.result(key, partial(self._ask_places, caller, act, missing, places.verdicts))
        return sorted(each for each in namespaces if places.verdicts[each])

    async def _ask_places(
        self, caller: Caller, act: ResourceAttributes, namespaces: Iterable[str], verdicts: dict[str, bool]
    ) -> None:
        async def ask(namespace: str) -> None:
            verdicts[namespace] = (await self._ask(caller, act._replace(namespace=namespace))).allowed

        await self._each(caller, namespaces, ask)

    async def _each(self, caller: Caller, keys: Iterable[K], ask: Callable[[K], Awaitable[None]]) -> None:
        """Call `ask` for each key, a few concurrently; the first error ends it."""

        async def asked(key: K) -> None:
            async with self._slots.turn(caller.limit_key):
                await ask(key)

        try:
            async with asyncio.TaskGroup() as tasks:
                for key in keys:
                    tasks.create_task(asked(key))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    def _remembered(self, caller: Caller, act: ResourceAttributes) -> AccessVerdict | None:
        kept = self._known.get(caller.limit_key, (caller.key, act))
        return kept[1] if kept is not None and time.monotonic() < kept[0] else None

    def _remember(self, caller: Caller, act: ResourceAttributes, verdict: AccessVerdict) -> None:
        self._known.put(caller.limit_key, (caller.key, act), (time.monotonic() + self._keep, verdict))

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
            # The API server adds these groups when it authenticates or impersonates.
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
