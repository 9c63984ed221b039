"""The steps of a CA and its certificate: a table of the next step for each state."""

from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from dynamo_admission.tls import pki
from dynamo_admission.tls.rotation import SecretState, completed, plan
from dynamo_admission.tls.timing import Timing
from dynamo_shared.x509 import BACKDATED

from .certificates import NAMES, START

TIMING = Timing()
DAY = 86400.0


def step(state: SecretState, after: float = 0.0, *, settled: bool = True, forced: bool = False) -> SecretState:
    return plan(state, START + after, TIMING, NAMES, settled=settled, forced=forced)


@pytest.fixture(scope="module")
def first() -> SecretState:
    return step(SecretState(), settled=False)


def test_an_empty_state_gets_a_ca_and_a_certificate(first: SecretState) -> None:
    (authority,), (leaf,) = first.authorities, first.serving
    assert pki.trusted(first.serving, first.authorities)
    assert pki.names_of(leaf) == NAMES
    assert pki.ends(authority) - START == TIMING.authority
    assert pki.ends(leaf) - START == TIMING.serving
    assert pki.begins(leaf) == pki.begins(authority) == START - BACKDATED, "for clients whose clock is behind"


def test_the_key_usages_of_the_certificates(first: SecretState) -> None:
    (authority,), (leaf,) = first.authorities, first.serving
    limits = authority.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (limits.critical, limits.value.ca, limits.value.path_length) == (True, True, 0)
    usage = authority.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert (usage.value.key_cert_sign, usage.value.digital_signature) == (True, False)
    assert list(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    for each in (authority, leaf):
        key = each.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.curve.name == "secp256r1"


def test_nothing_changes_while_nothing_is_due(first: SecretState) -> None:
    assert step(first) == first
    assert step(first, 59 * DAY) == first
    assert step(first, settled=False) == first


def test_a_certificate_is_renewed_after_two_thirds_of_its_life(first: SecretState) -> None:
    renewed = step(first, 60 * DAY)
    assert renewed.serving != first.serving
    assert renewed.authorities == first.authorities, "by the same authority"
    assert renewed.authority_key == first.authority_key
    assert step(first, 60 * DAY, settled=False).serving != first.serving, "whose bundle it does not change"


def test_a_ca_is_replaced_in_steps(first: SecretState) -> None:
    due = 2 / 3 * TIMING.authority
    current = replace(first, serving=step(first, due - DAY).serving)
    introduced = step(current, due)
    assert introduced.authorities[:1] == current.authorities
    assert len(introduced.authorities) == 2
    assert introduced.serving == current.serving, "the API server may not know the new one yet"
    assert introduced.authority_key != current.authority_key, "the old one signs nothing any more"
    assert step(introduced, due + 1, settled=False) == introduced

    switched = step(introduced, due + TIMING.settle)
    assert pki.signed_by(switched.serving[0], introduced.authorities[1])
    assert switched.authorities == introduced.authorities, "other replicas still serve what the old one signed"
    assert step(switched, due + TIMING.settle + 1) == switched

    dropped = step(switched, due + TIMING.settle + TIMING.overlap)
    assert dropped.authorities == introduced.authorities[1:]
    assert dropped.serving == switched.serving
    assert step(dropped, due + TIMING.settle + TIMING.overlap) == dropped


def test_a_new_ca_can_be_requested(first: SecretState) -> None:
    introduced = step(first, DAY, forced=True)
    assert len(introduced.authorities) == 2
    assert introduced.serving == first.serving
    assert step(introduced, DAY, settled=False, forced=True) == introduced, "one is being introduced already"
    switched = step(introduced, DAY + TIMING.settle)
    assert len(step(switched, DAY + TIMING.settle, forced=True).authorities) == 3, (
        "the oldest is still in use somewhere"
    )


def test_missing_names_are_added_and_none_is_removed(first: SecretState) -> None:
    desired = ("other.example.org", NAMES[0])
    changed = plan(first, START + DAY, TIMING, desired, settled=False)
    assert pki.names_of(changed.serving[0]) == ("other.example.org", *NAMES)
    assert changed.authorities == first.authorities
    assert plan(changed, START + DAY, TIMING, NAMES, settled=False) == changed, "two versions do not fight"
    assert pki.names_of(step(changed, 61 * DAY).serving[0]) == NAMES, "a renewal forgets what no one wants"


def test_expired_certificates_are_replaced_at_once_after_a_long_sleep(first: SecretState) -> None:
    # The certificate has expired and the CA is due: the CA that the API server trusts signs a last certificate.
    woken = step(first, 300 * DAY, settled=False)
    assert woken.authorities[:1] == first.authorities
    assert len(woken.authorities) == 2
    assert pki.signed_by(woken.serving[0], first.authorities[0])
    # It expired during a rotation: handshakes fail already.
    woken = step(step(first, DAY, forced=True), 91 * DAY, settled=False)
    assert pki.signed_by(woken.serving[0], woken.authorities[-1])
    # All have expired.
    woken = step(first, 400 * DAY, settled=False)
    assert len(woken.authorities) == 1
    assert woken.authorities != first.authorities
    assert pki.trusted(woken.serving, woken.authorities)
    # Asleep during a rotation; the newest CA has expired, too.
    introduced = step(replace(first, serving=step(first, 240 * DAY).serving), 250 * DAY)
    woken = step(introduced, 700 * DAY, settled=False)
    assert len(woken.authorities) == 1
    assert pki.trusted(woken.serving, woken.authorities)


def test_certificates_issued_by_a_clock_that_was_ahead_are_replaced_at_once(first: SecretState) -> None:
    # It was ahead when a certificate was due: clients refuse that one until it is valid, and no other rule replaces it.
    back = step(step(first, 60 * DAY), 30 * DAY, settled=False)
    assert pki.begins(back.serving[0]) == START + 30 * DAY - BACKDATED
    assert back.authorities == first.authorities
    # It was ahead when a CA was due, and is correct again before that CA has signed.
    current = replace(first, serving=step(first, 200 * DAY).serving)
    introduced = step(current, 250 * DAY)
    back = step(introduced, 201 * DAY)
    assert back.serving == current.serving, "which everybody accepts"
    assert back.authorities[:-1] == introduced.authorities
    assert pki.signed_by(step(back, 201 * DAY).serving[0], back.authorities[-1])
    # It is correct again after that CA has signed: handshakes fail already.
    back = step(step(introduced, 250 * DAY), 201 * DAY, settled=False)
    assert pki.begins(back.authorities[-1]) == START + 201 * DAY - BACKDATED
    assert pki.signed_by(back.serving[0], back.authorities[-1])
    assert back.authorities[:-1] == introduced.authorities, "other replicas may serve what they signed"


def test_a_clock_that_is_a_little_behind_replaces_nothing(first: SecretState) -> None:
    assert step(first, -BACKDATED) == first


def test_a_certificate_expires_no_later_than_its_ca() -> None:
    state = plan(SecretState(), START, replace(TIMING, serving=2 * TIMING.authority), NAMES, settled=False)
    assert pki.ends(state.serving[0]) == pki.ends(state.authorities[0])


def test_a_certificate_outlasts_the_steps_of_its_ca(first: SecretState) -> None:
    # Both are due at once: the old CA renews the certificate before the new one takes over.
    introduced = step(first, 89 * DAY, forced=True)
    assert pki.signed_by(introduced.serving[0], first.authorities[0])
    assert pki.ends(introduced.serving[0]) == START + 89 * DAY + TIMING.serving
    assert step(introduced, 90 * DAY, settled=False) == introduced


def test_a_deleted_secret_is_replaced_without_a_gap(first: SecretState) -> None:
    made = step(completed(SecretState(), first.public), DAY, settled=True)
    assert made.authorities[:1] == first.authorities
    assert len(made.authorities) == 2
    assert made.serving == first.serving, "served on until the new authority is trusted"
    assert made.serving_key == first.serving_key


@pytest.mark.parametrize("lost", ["authorities", "authority_key", "serving", "serving_key"])
def test_a_broken_secret_is_repaired_without_a_gap(first: SecretState, lost: str) -> None:
    empty: dict[str, bytes | tuple[x509.Certificate, ...]] = {lost: b"" if lost.endswith("key") else ()}
    if lost == "serving_key":
        empty["serving"] = ()
    if lost == "authorities":
        empty["authority_key"] = b""
    broken = replace(first, **empty)  # type: ignore[arg-type]
    mended = step(completed(broken, first.public), DAY, settled=True)
    assert mended.serving == first.serving
    assert mended.authorities[0] == first.authorities[0]
    assert len(mended.authorities) == (1 if lost.startswith("serving") else 2)
    # Without a remembered state nothing can be kept.
    alone = step(completed(broken, SecretState()), DAY, settled=False)
    assert pki.trusted(alone.serving, alone.authorities)
    assert pki.ends(alone.authorities[-1]) > START + DAY


def test_keys_are_not_shown(first: SecretState) -> None:
    assert "PRIVATE" not in repr(first)
    assert "authority_key" not in repr(first)
    assert first.public.authority_key == b""


def test_short_lived_cas_have_short_steps() -> None:
    timing = Timing.of(60, 30)
    assert timing.settle + timing.overlap < 60 / 3
    # A long-lived CA with short-lived certificates: a third of a certificate's life is left when the CA begins to
    # change.
    timing = Timing.of(365 * DAY, 30)
    assert timing.poll + timing.announce + timing.settle < 30 / 3
    assert Timing.of(365 * DAY, 90 * DAY) == Timing()
