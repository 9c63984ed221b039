"""The rotation of the service's own CA and its serving certificate, as a pure function from state to state.

A CA is replaced in steps, so that the API server can always verify the serving certificate:

1. the new CA joins the bundle; the serving certificate is still signed by the old CA;
2. when the bundle has settled where the API server reads it, a certificate of the new CA is served;
3. when every replica serves it, the old CA leaves the bundle.

Every replica makes the same plan from the same state, and the first write to the Secret wins. The progress of a
rotation follows from the state alone, so a replica that was away has missed nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from cryptography import x509
from dynamo_shared.x509 import make_authority

from dynamo_admission.tls import pki
from dynamo_admission.tls.timing import Timing

#: A certificate is renewed after this fraction of its lifetime.
RENEWED_AFTER = 2 / 3


@dataclass(frozen=True, slots=True)
class SecretState:
    """The content of the Secret. Keys are PEM; no key is ever printed."""

    #: The bundle, the oldest first; the last one signs.
    authorities: tuple[x509.Certificate, ...] = ()
    #: The key of the last CA; earlier CAs sign nothing any more, and their keys no longer exist.
    authority_key: bytes = field(default=b"", repr=False)
    #: The served chain, leaf first.
    serving: tuple[x509.Certificate, ...] = ()
    serving_key: bytes = field(default=b"", repr=False)

    @property
    def bundle(self) -> bytes:
        """The CAs, PEM."""
        return pki.pem_of(*self.authorities)

    @property
    def public(self) -> Self:
        """The state without the CA's key: all that a replica needs to remember."""
        return replace(self, authority_key=b"")


def plan(
    state: SecretState, now: float, timing: Timing, names: Sequence[str], *, settled: bool, forced: bool = False
) -> SecretState:
    """The next state; the same state if no step is due.

    `settled`: the bundle of this state was announced and has had the time to reach the API server. `forced`: the user
    requests a new CA; ignored during the introduction of one.
    """
    state = _without_ended(state, now)
    introducing = bool(state.serving and state.authorities) and not _signed_by_last(state)
    if not _can_sign(state, now) or _due(state.authorities[-1], now) or (forced and not introducing):
        state = _add_authority(state, now, timing, names)
        settled = False
    if not _servable(state, now):
        # Every client already refuses the served certificate: no reason to wait for the bundle.
        return _issue(state, now, timing, names)
    leaf = state.serving[0]
    if not _signed_by_last(state):
        return _issue(state, now, timing, names) if settled else state
    if _due(leaf, now):
        return _issue(state, now, timing, names)
    valid_for = pki.names_of(leaf)
    if missing := [name for name in names if name not in valid_for]:
        # Keep the present names, too: during a rolling update, replicas may need different names.
        return _issue(state, now, timing, (*missing, *valid_for))
    if now >= pki.issued(leaf) + timing.overlap:
        state = replace(state, authorities=state.authorities[-1:])
    return state


def completed(stored: SecretState, known: SecretState) -> SecretState:
    """The stored state, completed with the last known state of this replica.

    So a deleted or broken Secret is replaced without a refused handshake: the CAs of the served certificate stay in the
    bundle, and the certificate is served until the next one is trusted.
    """
    if stored.serving and stored.authorities and stored.authority_key:
        return stored
    kept = tuple(each for each in known.authorities if each not in stored.authorities)
    served = stored if stored.serving else known
    return SecretState((*kept, *stored.authorities), stored.authority_key, served.serving, served.serving_key)


def _without_ended(state: SecretState, now: float) -> SecretState:
    living = tuple(each for each in state.authorities if pki.ends(each) > now)
    # The key belongs to the last CA only.
    return replace(
        state, authorities=living, authority_key=state.authority_key if living[-1:] == state.authorities[-1:] else b""
    )


def _is_valid(certificate: x509.Certificate, now: float) -> bool:
    """A certificate that is not valid yet was issued by a replica whose clock was ahead: clients refuse it like an
    expired one.
    """
    return pki.begins(certificate) <= now < pki.ends(certificate)


def _can_sign(state: SecretState, now: float) -> bool:
    return bool(state.authorities and state.authority_key and _is_valid(state.authorities[-1], now))


def _servable(state: SecretState, now: float) -> bool:
    return bool(
        state.serving
        and state.serving_key
        and _is_valid(state.serving[0], now)
        and pki.trusted(state.serving, [each for each in state.authorities if _is_valid(each, now)])
    )


def _signed_by_last(state: SecretState) -> bool:
    return pki.signed_by(state.serving[0], state.authorities[-1])


def _due(certificate: x509.Certificate, now: float) -> bool:
    made = pki.issued(certificate)
    return now >= made + RENEWED_AFTER * (pki.ends(certificate) - made)


def _add_authority(state: SecretState, now: float, timing: Timing, names: Sequence[str]) -> SecretState:
    if _can_sign(state, now) and (not _servable(state, now) or _due(state.serving[0], now)):
        # The last certificate that the present CA signs: it must be valid until the next CA is trusted.
        state = _issue(state, now, timing, names)
    authority, key = make_authority(now, timing.authority, "dynamo-admission-ca")
    return replace(state, authorities=(*state.authorities, authority), authority_key=key)


def _issue(state: SecretState, now: float, timing: Timing, names: Sequence[str]) -> SecretState:
    certificate, key = pki.make_serving(state.authorities[-1], state.authority_key, names, now, timing.serving)
    return replace(state, serving=(certificate,), serving_key=key)
