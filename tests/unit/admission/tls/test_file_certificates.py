"""Certificate files: errors are reported at the start; changes are served without a restart or a failed handshake."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from dynamo_admission.tls import Unusable, open_certificates, pki
from dynamo_admission.tls.file_certificates import FileCertificates
from dynamo_admission.tls.timing import Timing
from dynamo_shared.runtime import Settings
from dynamo_shared.x509 import date, key_pem, make_authority

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube

from .certificates import NAMES, nothing, served_to

TIMING = Timing()
DAY = 86400.0


class Authority:
    """A CA of another user."""

    def __init__(self) -> None:
        self.certificate, self.key = make_authority(time.time(), 365 * DAY, name="ca")

    @property
    def pem(self) -> bytes:
        return pki.pem_of(self.certificate)

    def pair(self, *names: str, at: float | None = None, validity: float = 90 * DAY) -> tuple[bytes, bytes]:
        now = time.time() if at is None else at
        certificate, key = pki.make_serving(self.certificate, self.key, names or NAMES, now, validity)
        return pki.pem_of(certificate), key


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(time.time())


def write(folder: Path, chain: bytes, key: bytes, authorities: bytes = b"") -> None:
    """Write plain files, one after the other."""
    (folder / "tls.crt").write_bytes(chain)
    (folder / "tls.key").write_bytes(key)
    if authorities:
        (folder / "ca.crt").write_bytes(authorities)


def mount(folder: Path, number: int, **files: bytes) -> None:
    """Replace the files like the kubelet: a new folder, and one link that moves to it."""
    content = folder / f"..{number}"
    content.mkdir(parents=True)
    for name, data in ((name.replace("_", "."), data) for name, data in files.items()):
        (content / name).write_bytes(data)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data") / name)
    (folder / "..tmp").symlink_to(content.name)
    (folder / "..tmp").rename(folder / "..data")


def opened(folder: Path, clock: ManualClock, inject_from: str = "") -> FileCertificates:
    return FileCertificates(folder, NAMES[0], clock, TIMING, inject_from=inject_from)


def test_the_given_certificate_is_served(authority: Authority, tmp_path: Path, clock: ManualClock) -> None:
    chain, key = authority.pair()
    write(tmp_path, chain, key, authority.pem)
    certificates = opened(tmp_path, clock)
    assert certificates.bundle == authority.pem
    assert certificates.inject_from == ""
    leaf = served_to(certificates.context, certificates.bundle, NAMES[0])
    assert pki.pem_of(leaf) == chain
    assert certificates.expires == pki.ends(leaf)


@pytest.mark.parametrize(
    ("webhook", "admission", "inject_from"),
    [
        ({"certProvisionMode": "manual"}, {"certificate": "serving"}, ""),
        ({"certProvisionMode": "cert-manager", "secretName": "secret"}, {}, "system/secret"),
        ({"certProvisionMode": "cert-manager"}, {"certificate": "serving"}, "system/serving"),
    ],
)
async def test_the_mode_says_who_announces_the_authorities(
    authority: Authority, tmp_path: Path, webhook: dict[str, str], admission: dict[str, str], inject_from: str
) -> None:
    write(tmp_path, *authority.pair(), authority.pem)
    document = {
        "server": {"webhook": {**webhook, "certDir": str(tmp_path)}},
        "platform": {"admission": {**admission, "namespace": "system"}},
    }
    certificates = await open_certificates(Settings.model_validate(document), cast(Any, MemoryKube()), NAMES)
    assert certificates.inject_from == inject_from
    assert certificates.bundle == (b"" if inject_from else authority.pem)


def test_the_root_of_the_chain_is_accepted(authority: Authority, tmp_path: Path, clock: ManualClock) -> None:
    chain, key = authority.pair()
    write(tmp_path, chain + authority.pem, key)
    assert opened(tmp_path, clock).bundle == authority.pem


def test_a_self_signed_certificate_is_its_own_ca(tmp_path: Path, clock: ManualClock) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "alone")])
    begin, end = date(time.time() - DAY), date(time.time() + DAY)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("*.dynamo-system.svc")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    write(tmp_path, pki.pem_of(certificate), key_pem(key))
    certificates = opened(tmp_path, clock)
    assert certificates.bundle == pki.pem_of(certificate)
    served_to(certificates.context, certificates.bundle, NAMES[0])


def encrypted(key: bytes) -> bytes:
    return serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    )


def folder_for_key(folder: Path, _: Authority) -> None:
    (folder / "tls.key").unlink()
    (folder / "tls.key").mkdir()


Change = Callable[[Path, Authority], object]
BAD: dict[str, tuple[Change, str]] = {
    "no certificate": (lambda f, _: (f / "tls.crt").unlink(), r"tls\.crt is missing: mount a Secret"),
    "no key": (lambda f, _: (f / "tls.key").unlink(), r"tls\.key is missing"),
    "a folder": (folder_for_key, r"tls\.key cannot be read: Is a dir"),
    "no PEM": (lambda f, _: (f / "tls.crt").write_text("hello"), r"tls\.crt has no certificate in PEM format"),
    "half a certificate": (
        lambda f, _: (f / "tls.crt").write_bytes((f / "tls.crt").read_bytes()[:300]),
        r"tls\.crt has no certificate in PEM format",
    ),
    "half a key": (
        lambda f, _: (f / "tls.key").write_bytes((f / "tls.key").read_bytes()[:80]),
        r"tls\.key has no private key in PEM format",
    ),
    "another key": (
        lambda f, a: (f / "tls.key").write_bytes(a.pair()[1]),
        r"tls\.key is not the key of the first certificate in .*tls\.crt",
    ),
    "an encrypted key": (
        lambda f, _: (f / "tls.key").write_bytes(encrypted((f / "tls.key").read_bytes())),
        r"tls\.key is encrypted; provide the key without a password",
    ),
    "it has ended": (
        lambda f, a: write(f, *a.pair(at=time.time() - 10 * DAY, validity=DAY)),
        r"the certificate in .*tls\.crt ended on \d{4}-\d\d-\d\d \d\d:\d\d UTC: renew it",
    ),
    "it has not begun": (
        lambda f, a: write(f, *a.pair(at=time.time() + 10 * DAY)),
        r"is valid only from .*: check the clock",
    ),
    "another name": (
        lambda f, a: write(f, *a.pair("a.example.org", "10.0.0.1")),
        r"tls\.crt is valid for a\.example\.org, 10\.0\.0\.1, but the API server connects to dynamo-webhook\.",
    ),
    "no authority": (
        lambda f, _: (f / "ca.crt").unlink(),
        r"ca\.crt is missing, and .*tls\.crt does not contain the authority of its certificate",
    ),
    "another authority": (
        lambda f, _: (f / "ca.crt").write_bytes(Authority().pem),
        r"no authority in .*ca\.crt issued the certificate in .*tls\.crt",
    ),
    "a broken authority": (lambda f, _: (f / "ca.crt").write_text("?"), r"ca\.crt has no certificate"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_unusable_files_are_reported_at_the_start(
    authority: Authority, tmp_path: Path, clock: ManualClock, case: str
) -> None:
    chain, key = authority.pair()
    write(tmp_path, chain, key, authority.pem)
    change, message = BAD[case]
    change(tmp_path, authority)
    with pytest.raises(Unusable, match=message) as caught:
        opened(tmp_path, clock)
    assert "PRIVATE" not in str(caught.value)


@pytest.mark.parametrize("case", BAD)
async def test_unusable_later_files_are_ignored(
    authority: Authority, tmp_path: Path, clock: ManualClock, case: str
) -> None:
    chain, key = authority.pair()
    write(tmp_path, chain, key, authority.pem)
    certificates = opened(tmp_path, clock)
    BAD[case][0](tmp_path, authority)
    await certificates.round(nothing)
    assert pki.pem_of(served_to(certificates.context, authority.pem, NAMES[0])) == chain
    if (tmp_path / "tls.key").is_dir():
        (tmp_path / "tls.key").rmdir()
    renewed, key = authority.pair()
    write(tmp_path, renewed, key, authority.pem)
    await certificates.round(nothing)
    assert pki.pem_of(served_to(certificates.context, authority.pem, NAMES[0])) == renewed


async def test_a_changed_mounted_secret_is_served_at_once(
    authority: Authority, tmp_path: Path, clock: ManualClock
) -> None:
    chain, key = authority.pair()
    mount(tmp_path, 1, tls_crt=chain, tls_key=key, ca_crt=authority.pem)
    certificates = opened(tmp_path, clock)
    context = certificates.context
    renewed, key = authority.pair()
    mount(tmp_path, 2, tls_crt=renewed, tls_key=key, ca_crt=authority.pem)
    assert pki.pem_of(served_to(context, authority.pem, NAMES[0])) == chain, "not checked yet"
    await certificates.round(nothing)
    assert pki.pem_of(served_to(context, authority.pem, NAMES[0])) == renewed


async def test_another_kind_of_key(authority: Authority, tmp_path: Path, clock: ManualClock) -> None:
    chain, key = authority.pair()
    write(tmp_path, chain, key, authority.pem)
    certificates = opened(tmp_path, clock)
    other = rsa.generate_private_key(65537, 2048)
    signer = pki.key_of(authority.key, "authority")
    begin, end = date(time.time() - DAY), date(time.time() + DAY)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rsa")])
    made = (
        x509.CertificateBuilder(authority.certificate.subject, subject, other.public_key(), 7, begin, end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAMES[0])]), critical=False)
        # Clients with Python 3.13 or newer require it.
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),  # type: ignore[arg-type]
            critical=False,
        )
        .sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    )
    form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    write(tmp_path, pki.pem_of(made), other.private_bytes(*form), authority.pem)
    await certificates.round(nothing)
    assert served_to(certificates.context, authority.pem, NAMES[0]) == made


async def test_a_new_ca_is_announced_before_its_certificate_is_served(
    authority: Authority, tmp_path: Path, clock: ManualClock
) -> None:
    chain, key = authority.pair()
    write(tmp_path, chain, key, authority.pem)
    certificates = opened(tmp_path, clock)
    registered: list[bytes] = []

    async def check() -> bytes:
        async def changed() -> None:
            registered.append(certificates.bundle)

        await certificates.round(changed)
        return pki.pem_of(served_to(certificates.context, registered[-1], NAMES[0]))

    assert await check() == chain
    other = Authority()
    following, key = other.pair()
    write(tmp_path, following, key, other.pem)
    assert await check() == chain
    assert registered[-1] == authority.pem + other.pem
    clock.now += TIMING.settle - 1
    assert await check() == chain
    clock.now += 1
    assert await check() == following
    assert registered[-1] == authority.pem + other.pem, "other replicas may not have read the files"
    clock.now += TIMING.overlap
    assert await check() == following
    assert registered == [authority.pem, authority.pem + other.pem, other.pem]


async def test_an_expired_certificate_is_replaced_at_once(
    authority: Authority, tmp_path: Path, clock: ManualClock
) -> None:
    write(tmp_path, *authority.pair(validity=DAY), authority.pem)
    certificates = opened(tmp_path, clock)
    await certificates.round(nothing)
    clock.now += 2 * DAY
    other = Authority()
    following, key = other.pair()
    write(tmp_path, following, key, other.pem)
    await certificates.round(nothing)
    assert pki.pem_of(served_to(certificates.context, other.pem, NAMES[0])) == following


async def test_cert_manager_announces_the_ca_itself(authority: Authority, tmp_path: Path, clock: ManualClock) -> None:
    chain, key = authority.pair()
    write(tmp_path, chain, key)
    certificates = opened(tmp_path, clock, "dynamo-system/webhook")
    assert certificates.inject_from == "dynamo-system/webhook"
    assert certificates.bundle == b""
    reported = 0

    async def changed() -> None:
        nonlocal reported
        reported += 1

    other = Authority()
    await certificates.round(changed)
    following, key = other.pair()
    write(tmp_path, following, key)
    await certificates.round(changed)
    assert reported == 1, "the registration is written once, with the annotation"
    assert pki.pem_of(served_to(certificates.context, other.pem, NAMES[0])) == following
