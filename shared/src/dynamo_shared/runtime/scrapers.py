"""Access to /metrics: the API server identifies the user of a bearer token, and decides whether the user may `get` the
path.

Kubernetes' own components use the same requests (TokenReview, SubjectAccessReview of a non-resource URL). Answers are
cached for a limited time and in a limited number, few requests run at once, and few wait: clients (addresses) that send
invented tokens delay other scrapers for a moment at most, and cost the API server little.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import structlog

from dynamo_shared.aio import Lanes, Shares
from dynamo_shared.kube import KubeClient, KubeError
from dynamo_shared.kube.reviews import plausible, review_access, review_token
from dynamo_shared.lru import LruCache

#: How long an answer counts: a change of the user's rights takes effect after this time. Seconds.
ALLOWED_FOR = 60.0
REFUSED_FOR = 10.0
#: Limit of cached answers; the oldest is dropped first.
ENTRIES = 1024
#: Limits of tokens being checked and of scrapers that wait for it.
AT_ONCE = 2
WAITING = 16
#: Limit for both requests together. Seconds.
ANSWERED_WITHIN = 5.0
PATH = "/metrics"

log = structlog.get_logger("dynamo.runtime")


class ScraperVerdict(NamedTuple):
    """An HTTP status, and a sentence for the caller if it is not 200."""

    status: int
    sentence: str = ""


GRANTED = ScraperVerdict(200)
_NO_TOKEN = ScraperVerdict(401, "a bearer token of this cluster is required")
_UNKNOWN = ScraperVerdict(401, "the bearer token is invalid or has expired")
_FORBIDDEN = ScraperVerdict(
    403, f"the user of this token may not get {PATH}; bind a ClusterRole with nonResourceURLs: [{PATH}], verbs: [get]"
)
_UNANSWERED = ScraperVerdict(503, "cannot check the token: the API server is unavailable; retry later")
_BUSY = ScraperVerdict(503, "cannot check the token: too many tokens are being checked; retry later")


class Scrapers:
    """Decides about the requests to one process. `clock`: monotonic, in seconds."""

    def __init__(self, kube: KubeClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._clock = clock
        self._known: LruCache[bytes, tuple[float, ScraperVerdict]] = LruCache(ENTRIES)
        self._asking = Lanes(AT_ONCE, of_one=AT_ONCE)
        self._waiting = Shares()

    async def verdict(self, authorization: str, client: str) -> ScraperVerdict:
        """The verdict for the value of an Authorization header. Clients take turns, and have shares of those that wait."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not plausible(token):
            return _NO_TOKEN
        digest = hashlib.sha256(token.encode()).digest()
        if (known := self._remembered(digest)) is not None:
            return known
        if self._waiting.is_full(client, WAITING):
            return _BUSY
        with self._waiting.taken(client):
            async with self._asking.turn(client):
                # Another request of the same scraper may have been answered meanwhile.
                if (known := self._remembered(digest)) is not None:
                    return known
                return await self._ask(token, digest)

    def _remembered(self, digest: bytes) -> ScraperVerdict | None:
        until, verdict = self._known.get(digest, (0.0, _UNANSWERED))
        return verdict if self._clock() < until else None

    async def _ask(self, token: str, digest: bytes) -> ScraperVerdict:
        try:
            async with asyncio.timeout(ANSWERED_WITHIN):
                verdict = await self._reviewed(token)
        except (KubeError, TimeoutError) as error:
            # The log must not have the token: an error of the client names the request, but not its body.
            log.warning("cannot check access to /metrics, refusing scrapes", error=str(error) or type(error).__name__)
            return _UNANSWERED
        self._known[digest] = (self._clock() + (ALLOWED_FOR if verdict is GRANTED else REFUSED_FOR), verdict)
        return verdict

    async def _reviewed(self, token: str) -> ScraperVerdict:
        status = await review_token(self._kube, token)
        user: dict[str, Any] = status.get("user") or {}
        if not status.get("authenticated") or not user.get("username"):
            return _UNKNOWN
        allowed, _ = await review_access(
            self._kube,
            {
                "user": user["username"],
                "uid": user.get("uid") or "",
                "groups": user.get("groups") or [],
                "extra": user.get("extra") or {},
                "nonResourceAttributes": {"path": PATH, "verb": "get"},
            },
        )
        return GRANTED if allowed else _FORBIDDEN
