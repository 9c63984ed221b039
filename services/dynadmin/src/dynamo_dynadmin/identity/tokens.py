"""Finds the caller of a bearer token: by TokenReview, or, if an issuer is configured, with the issuer's keys."""

import hashlib
import time
from dataclasses import dataclass, field

from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.oidc import token_expiry
from dynamo_shared.kube.reviews import plausible, review_token
from dynamo_shared.lru import LruCache

from dynamo_dynadmin.identity.oidc import LEEWAY, Issuer
from dynamo_dynadmin.identity.who import Caller, Unidentified, identity_of

#: A revoked token stays valid no longer than this. Seconds.
REMEMBERED = 30.0
_ENTRIES = 4096


@dataclass(eq=False)
class Tokens:
    """Identifies callers by their tokens. Answers are remembered for `REMEMBERED` seconds, by a hash of the token."""

    kube: KubeClient
    audiences: tuple[str, ...] = ()
    issuer: Issuer | None = None
    _known: LruCache[str, tuple[float, Caller]] = field(default_factory=lambda: LruCache(_ENTRIES), init=False)

    async def caller(self, token: str) -> Caller:
        """The caller of a token. Raises Unidentified, Disallowed, and KubeError if the API server cannot be asked."""
        if (known := self.remembered(token)) is not None:
            return known
        # A token expires by wall-clock time; the remembered answer expires by a monotonic clock.
        now, passed = time.time(), time.monotonic()
        if self.issuer is not None and not self.is_of_cluster(token):
            caller = await self.issuer.caller(token)
        else:
            caller = await self._reviewed(token)
        self._current(caller, now)
        self._known[_digest(token)] = (passed + REMEMBERED, caller)
        return caller

    def remembered(self, token: str) -> Caller | None:
        """The remembered caller of a token; None if no current answer is remembered. Raises Unidentified."""
        if not plausible(token):
            raise Unidentified("this is not a bearer token")
        kept = self._known.get(_digest(token))
        return self._current(kept[1], time.time()) if kept is not None and time.monotonic() < kept[0] else None

    def is_of_cluster(self, token: str) -> bool:
        """Whether the API server reviews the token, and not the configured issuer's keys."""
        return self.issuer is None or not self.issuer.knows(token)

    def _current(self, caller: Caller, now: float) -> Caller:
        if caller.expires is not None and now >= caller.expires + LEEWAY:
            raise Unidentified("the token has expired; log in again")
        return caller

    async def _reviewed(self, token: str) -> Caller:
        status = await review_token(self.kube, token, self.audiences)
        if not status.get("authenticated"):
            raise Unidentified("the token is unknown to the cluster or has expired; log in again")
        if self.audiences and not set(self.audiences) & set(status.get("audiences") or ()):
            # An authenticator that does not support audiences answers without them.
            raise Unidentified(f"the token is not for {', '.join(self.audiences)}")
        user = status.get("user") or {}
        identity = identity_of(
            str(user.get("username") or ""), str(user.get("uid") or ""), user.get("groups") or (), user.get("extra")
        )
        return Caller(identity, token_expiry(f"Bearer {token}"))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
