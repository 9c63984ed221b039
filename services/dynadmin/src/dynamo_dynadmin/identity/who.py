"""Callers, and which identities are never acted for. Pure."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from dynamo_shared.kube import Identity

#: Prefix of the identities of the cluster itself.
SYSTEM = "system:"
_SERVICE_ACCOUNT = "system:serviceaccount:"
#: The API server gives these to identities by itself: to every authenticated one, and to service accounts.
_GIVEN = ("system:authenticated", "system:serviceaccounts")
_OF_SERVICE_ACCOUNTS = "system:serviceaccounts:"


class Unidentified(Exception):
    """The caller is not known: no token, one that no issuer knows, or one that has expired."""


class Disallowed(Exception):
    """Who calls is known, and is never acted for."""


@dataclass(frozen=True)
class Caller:
    """A user whose token was verified. `expires` is a Unix time, None where the token does not say."""

    identity: Identity
    expires: float | None = None
    by_session: bool = False

    @cached_property
    def key(self) -> str:
        """Distinguishes callers by all of their identity."""
        identity = self.identity
        extra = sorted((name, tuple(values)) for name, values in identity.extra.items())
        text = repr((identity.user, identity.uid, sorted(identity.groups), extra))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def limited_as(self) -> str:
        """Whose limits the caller's requests count for: a user's with all tokens, each of which has an identity of its own.

        Service accounts of a namespace count together: who may create one may create thousands.
        """
        user = self.identity.user
        return user.rpartition(":")[0] if user.startswith(_SERVICE_ACCOUNT) else user


def of_whom(limited_as: str) -> str:
    """How a caller reads whose limit is reached: other service accounts of the namespace may have reached it."""
    account = limited_as.removeprefix(_SERVICE_ACCOUNT)
    return "of yours" if account == limited_as else f"of service accounts of namespace {account}"


def identity_of(
    user: str, uid: str = "", groups: Iterable[str] = (), extra: Mapping[str, Iterable[str]] | None = None
) -> Identity:
    """The identity to act for. Disallowed for those of the system: only service accounts are among its users.

    Who could bring `system:masters` here would have all rights, whatever RBAC says; so would components of the control
    plane. A service account gets the groups that the API server gives to it, and no others of the system.
    """
    _as_header(user)
    _as_header(uid)
    if not user:
        raise Unidentified("the token names no user")
    is_account = user.startswith(_SERVICE_ACCOUNT) and len(user.removeprefix(_SERVICE_ACCOUNT).split(":")) == 2
    if user.startswith(SYSTEM) and not is_account:
        raise Disallowed(f"{user} is an identity of the system; call with one of a user or of a service account")
    kept = []
    for group in groups:
        _as_header(group)
        if group in _GIVEN or (is_account and group.startswith(_OF_SERVICE_ACCOUNTS)):
            continue
        if group.startswith(SYSTEM):
            raise Disallowed(f"group {group} is one of the system; call with an identity that does not have it")
        kept.append(group)
    if is_account and kept:
        # With groups named the API server gives none by itself.
        namespace = user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
        kept += ["system:serviceaccounts", f"{_OF_SERVICE_ACCOUNTS}{namespace}"]
    known = {name: tuple(values) for name, values in (extra or {}).items()}
    for name, values in known.items():
        _as_header(name)
        for value in values:
            _as_header(value)
    return Identity(user, uid, tuple(kept), known)


def _as_header(text: str) -> None:
    """Disallowed for what would not arrive as it is: servers cut blanks off the ends of a header's value."""
    if not text.isprintable() or len(text) > 1024 or text != text.strip():
        raise Disallowed("the identity holds characters that no header takes, or a blank at one of its ends")
