"""Callers, and the identities for which the service never acts. Pure."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv6Address, IPv6Network

from dynamo_shared.api.untrusted.addresses import parsed
from dynamo_shared.kube import Identity

#: Prefix of the cluster's own identities.
SYSTEM = "system:"
_SERVICE_ACCOUNT = "system:serviceaccount:"
#: Groups that the API server adds by itself: to every authenticated identity, and to service accounts.
_GIVEN = ("system:authenticated", "system:serviceaccounts")
_OF_SERVICE_ACCOUNTS = "system:serviceaccounts:"


class Unidentified(Exception):
    """The caller is unknown: there is no token, or no issuer knows it, or it has expired."""


class Disallowed(Exception):
    """The caller is known, but the service never acts for this identity."""


@dataclass(frozen=True)
class Caller:
    """A user with a verified token. `expires` is a Unix time, None if the token does not state it."""

    identity: Identity
    expires: float | None = None
    by_session: bool = False

    @cached_property
    def key(self) -> str:
        """A hash of the complete identity, which distinguishes callers."""
        identity = self.identity
        extra = sorted((name, tuple(values)) for name, values in identity.extra.items())
        text = repr((identity.user, identity.uid, sorted(identity.groups), extra))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def limit_key(self) -> str:
        """The name under which the caller's requests are limited: a user's requests count together, although each token
        is an identity of its own.

        Service accounts of a namespace count together: a user who may create one may create thousands.
        """
        user = self.identity.user
        return user.rpartition(":")[0] if user.startswith(_SERVICE_ACCOUNT) else user


def anonymous(remote: str) -> Caller:
    """The caller of public routes, by network. No request to Kubernetes uses this name."""
    return Caller(Identity(f"anonymous {network_of(remote)}"))


def network_of(remote: str) -> str:
    """The network that counts as one caller: an IPv4 address, or the /64 of an IPv6 address, which one machine may own
    completely.
    """
    address = parsed(remote)
    return str(IPv6Network((address, 64), strict=False) if isinstance(address, IPv6Address) else address or remote)


def whose_limit(limit_key: str) -> str:
    """Says in a message whose limit is reached: other service accounts of the namespace may have used it up."""
    account = limit_key.removeprefix(_SERVICE_ACCOUNT)
    return "of yours" if account == limit_key else f"of service accounts of namespace {account}"


def identity_of(
    user: str, uid: str = "", groups: Iterable[str] = (), extra: Mapping[str, Iterable[str]] | None = None
) -> Identity:
    """The identity to act for. Raises Disallowed for system identities; of the users with the prefix `system:`, only
    service accounts are accepted.

    A caller with the group `system:masters` would have all rights, whatever RBAC says, and so would components of the
    control plane. A service account gets the groups that the API server gives it, and no other system groups.
    """
    _as_header(user)
    _as_header(uid)
    if not user:
        raise Unidentified("the token does not name a user")
    is_account = user.startswith(_SERVICE_ACCOUNT) and len(user.removeprefix(_SERVICE_ACCOUNT).split(":")) == 2
    if user.startswith(SYSTEM) and not is_account:
        raise Disallowed(f"{user} is an identity of the system; use the token of a user or of a service account")
    kept = []
    for group in groups:
        _as_header(group)
        if group in _GIVEN or (is_account and group.startswith(_OF_SERVICE_ACCOUNTS)):
            continue
        if group.startswith(SYSTEM):
            raise Disallowed(f"group {group} is a group of the system; use an identity that is not in this group")
        kept.append(group)
    if is_account and kept:
        # If a request names groups, the API server adds none.
        namespace = user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
        kept += ["system:serviceaccounts", f"{_OF_SERVICE_ACCOUNTS}{namespace}"]
    known = {name: tuple(values) for name, values in (extra or {}).items()}
    for name, values in known.items():
        _as_header(name)
        for value in values:
            _as_header(value)
    return Identity(user, uid, tuple(kept), known)


def _as_header(text: str) -> None:
    """Raises Disallowed for text that would not arrive unchanged: servers remove blanks at the ends of a header's
    value.
    """
    if not text.isprintable() or len(text) > 1024 or text != text.strip():
        raise Disallowed("the identity has characters that headers do not allow, or a blank at one end")
