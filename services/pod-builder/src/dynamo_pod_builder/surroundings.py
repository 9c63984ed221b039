"""What a namespace provides for its pods: secrets of image registries, and the service account for component pods.

Only Secrets are not read from STATE: they leave the API server only in its answers to this service. They are listed by
namespace and type, and only the names of registries and secrets are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

import structlog
from dynamo_shared.aio import Joined
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import SECRETS, SERVICE_ACCOUNTS
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Forbidden, KubeError
from dynamo_shared.lru import LruCache
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import events
from dynamo_pod_builder.render.access.pull_secrets import NO_PULL_SECRETS, TYPES, Malformed, PullSecrets
from dynamo_pod_builder.render.access.pull_secrets import index as index_of_secrets
from dynamo_pod_builder.render.config import DEFAULT_ACCOUNT

#: Maximum age of a namespace's list of secrets; the reference's interval (operator behaviour, section 10). Seconds.
REFRESH = 60.0
#: How often ages are checked, which spreads the lists of many namespaces. Seconds.
CHECK_INTERVAL = 5.0
#: The number of namespaces whose secrets are kept; beyond it, the least recently used are dropped and listed again.
CAPACITY = 5000
#: The pull secrets of a namespace have some hundred KB; one may have a megabyte. Bytes of a type.
MOST_BYTES = 16 << 20
_COMPONENT_ACCOUNTS = "component-accounts"

log = structlog.get_logger("dynamo.pod-builder.surroundings")


def index(cache: ObjectCache) -> None:
    """Index the service accounts with the label for component pods by namespace: each graph also has its own accounts."""
    cache.add_index(
        SERVICE_ACCOUNTS,
        _COMPONENT_ACCOUNTS,
        lambda account: (objects.namespace(account),) if is_component_account(account) else (),
    )


def component_account(cache: ObjectCache, namespace: str) -> str:
    """Name of the alphabetically first service account that is labelled for component pods."""
    # Only keys are read: a user may label thousands of accounts, which the cache keeps packed.
    labelled = cache.keys_by_index(SERVICE_ACCOUNTS, _COMPONENT_ACCOUNTS, namespace)
    return min((each.name for each in labelled), default=DEFAULT_ACCOUNT)


def is_component_account(account: KubeObject | None) -> bool:
    """Whether a service account is labelled for component pods."""
    return account is not None and objects.labels(account).get(labels.COMPONENT_POD) == "true"


@dataclass(eq=False)
class PullSecretLists:
    """The pull secrets of namespaces; `changed` is called with each namespace whose secrets have changed.

    Empty if the platform may not list secrets.
    """

    kube: KubeClient
    announcer: Announcer
    _: KW_ONLY
    in_use: Callable[[str], bool]
    changed: Callable[[str], None]
    clock: Callable[[], float]
    _known: LruCache[str, _Known] = field(default_factory=lambda: LruCache(CAPACITY), init=False)
    _listing: Joined[str, _Known] = field(default_factory=Joined, init=False)
    _forbidden: bool = field(default=False, init=False)

    async def of(self, namespace: str) -> PullSecrets:
        """The pull secrets of a namespace, at most `REFRESH` old. Raises KubeError if unknown and not listable."""
        known = self._known.get(namespace)
        if known is None or self.clock() - known.at >= REFRESH:
            # If several components ask at the same time, only one lists.
            known = await self._listing.result(namespace, partial(self._list, namespace, known))
        # While a caller waits for the list, other namespaces may push it out.
        self._known.touch(namespace)
        return known.secrets

    async def run(self) -> None:
        """List known namespaces periodically until cancelled, so that a new secret is noticed without another event."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            for namespace in list(self._known):
                if not self.in_use(namespace):
                    self._known.pop(namespace, None)
                    continue
                try:
                    await self.of(namespace)
                except KubeError as error:
                    log.warning("cannot list secrets", namespace=namespace, error=str(error))

    async def _list(self, namespace: str, before: _Known | None) -> _Known:
        listed: list[KubeObject] = []
        try:
            for type_ in TYPES:
                listed += await self.kube.list(SECRETS, namespace, field_selector=f"type={type_}", most=MOST_BYTES)
        except Forbidden as error:
            if not self._forbidden:
                log.warning("image pull secrets are not used: the platform may not list Secrets", error=str(error))
            self._forbidden = True
            return self._keep(namespace, before, before.secrets if before else NO_PULL_SECRETS, ())
        except KubeError as error:
            if before is None:
                # Objects that are rendered without them would be replaced as soon as they are known.
                raise
            log.warning("cannot list secrets", namespace=namespace, error=str(error))
            return self._keep(namespace, before, before.secrets, before.malformed)
        self._forbidden = False
        secrets, malformed = index_of_secrets(listed)
        reported = frozenset(before.malformed) if before else frozenset()
        by_name = {each["metadata"]["name"]: each for each in listed}
        for each in malformed:
            if each not in reported:
                self._report(namespace, each, by_name[each.name])
        return self._keep(namespace, before, secrets, malformed)

    def _keep(
        self, namespace: str, before: _Known | None, secrets: PullSecrets, malformed: tuple[Malformed, ...]
    ) -> _Known:
        known = self._known[namespace] = _Known(secrets, malformed, self.clock())
        if before is not None and before.secrets != secrets:
            self.changed(namespace)
        return known

    def _report(self, namespace: str, malformed: Malformed, secret: KubeObject) -> None:
        log.warning("malformed pull secret", namespace=namespace, secret=malformed.name, problem=malformed.message)
        without_content = {key: secret[key] for key in ("apiVersion", "kind", "metadata")}
        words = f"{malformed.message}; the namespace's other pull secrets are used"
        self.announcer.announce(without_content, events.PULL_SECRET_MALFORMED(words))


@dataclass(frozen=True, slots=True)
class _Known:
    secrets: PullSecrets
    malformed: tuple[Malformed, ...]
    at: float
