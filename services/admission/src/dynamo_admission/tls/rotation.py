"""The steps of an authority of our own and its serving certificate, as a pure function from state to state.

An authority is followed by the next in steps, so that at no time a certificate is served that the API server cannot
verify:

1. the new authority joins the bundle; what is served is still signed by the old one;
2. once the bundle has settled where the API server reads it, a certificate of the new authority goes into service;
3. once every replica has taken that up, the old authority leaves the bundle.

Every replica makes the same plan from the same state, and the Secret takes the first one that is written. Where in the
steps a rotation is follows from the state alone, so a replica that was away has missed nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from cryptography import x509
from dynamo_shared.x509 import make_authority

from dynamo_admission.tls import pki
from dynamo_admission.tls.timing import Timing

#: A certificate is followed by the next when this part of its life is over.
RENEWED_AFTER = 2 / 3


@dataclass(frozen=True, slots=True)
class SecretState:
    """What the Secret holds. Keys are PEM; no key is ever shown."""

    #: The bundle, the oldest first; the last one signs.
    authorities: tuple[x509.Certificate, ...] = ()
    #: The last one's; those before sign nothing any more, and theirs are gone.
    authority_key: bytes = field(default=b"", repr=False)
    #: The chain that is served, leaf first.
    serving: tuple[x509.Certificate, ...] = ()
    serving_key: bytes = field(default=b"", repr=False)

    @property
    def bundle(self) -> bytes:
        """The authorities, PEM."""
        return pki.pem_of(*self.authorities)

    @property
    def public(self) -> Self:
        """Without the authority's key: all that a replica needs to remember."""
        return replace(self, authority_key=b"")


def plan(
    state: SecretState, now: float, timing: Timing, names: Sequence[str], *, settled: bool, forced: bool = False
) -> SecretState:
    """The state that should follow; the same where nothing is due.

    `settled`: this state's bundle was announced and has had the time to reach the API server. `forced`: the user asks
    for a new authority; nothing to do while one is being introduced.
    """
    state = _without_ended(state, now)
    introducing = bool(state.serving and state.authorities) and not _signed_by_last(state)
    if not _can_sign(state, now) or _due(state.authorities[-1], now) or (forced and not introducing):
        state = _introduce(state, now, timing, names)
        settled = False
    if not _servable(state, now):
        # What is served is refused by everybody already: no reason to wait for the bundle.
        return _issue(state, now, timing, names)
    leaf = state.serving[0]
    if not _signed_by_last(state):
        return _issue(state, now, timing, names) if settled else state
    if _due(leaf, now):
        return _issue(state, now, timing, names)
    valid_for = pki.names_of(leaf)
    if missing := [name for name in names if name not in valid_for]:
        # Besides the present names: while an update rolls, replicas may want different ones.
        return _issue(state, now, timing, (*missing, *valid_for))
    if now >= pki.issued(leaf) + timing.overlap:
        state = replace(state, authorities=state.authorities[-1:])
    return state


def completed(stored: SecretState, known: SecretState) -> SecretState:
    """The stored state; what it lacks is filled from what this replica last knew.

    A Secret that was deleted or broken is thereby replaced without a refused handshake: authorities that vouch
    for what is being served stay in the bundle, and the certificate stays in service until the next one is trusted.
    """
    if stored.serving and stored.authorities and stored.authority_key:
        return stored
    kept = tuple(each for each in known.authorities if each not in stored.authorities)
    served = stored if stored.serving else known
    return SecretState((*kept, *stored.authorities), stored.authority_key, served.serving, served.serving_key)


def _without_ended(state: SecretState, now: float) -> SecretState:
    living = tuple(each for each in state.authorities if pki.ends(each) > now)
    # The key is the last one's, and no other's.
    return replace(
        state, authorities=living, authority_key=state.authority_key if living[-1:] == state.authorities[-1:] else b""
    )


def _in_force(certificate: x509.Certificate, now: float) -> bool:
    """One that begins later was issued by a replica whose clock was ahead: clients refuse it, as one that has ended."""
    return pki.begins(certificate) <= now < pki.ends(certificate)


def _can_sign(state: SecretState, now: float) -> bool:
    return bool(state.authorities and state.authority_key and _in_force(state.authorities[-1], now))


def _servable(state: SecretState, now: float) -> bool:
    return bool(
        state.serving
        and state.serving_key
        and _in_force(state.serving[0], now)
        and pki.trusted(state.serving, [each for each in state.authorities if _in_force(each, now)])
    )


def _signed_by_last(state: SecretState) -> bool:
    return pki.signed_by(state.serving[0], state.authorities[-1])


def _due(certificate: x509.Certificate, now: float) -> bool:
    made = pki.issued(certificate)
    return now >= made + RENEWED_AFTER * (pki.ends(certificate) - made)


def _introduce(state: SecretState, now: float, timing: Timing, names: Sequence[str]) -> SecretState:
    if _can_sign(state, now) and (not _servable(state, now) or _due(state.serving[0], now)):
        # The last that the present authority signs: it has to last until the next one is trusted.
        state = _issue(state, now, timing, names)
    authority, key = make_authority(now, timing.authority, "dynamo-admission-ca")
    return replace(state, authorities=(*state.authorities, authority), authority_key=key)


def _issue(state: SecretState, now: float, timing: Timing, names: Sequence[str]) -> SecretState:
    certificate, key = pki.make_serving(state.authorities[-1], state.authority_key, names, now, timing.serving)
    return replace(state, serving=(certificate,), serving_key=key)
