"""Credentials of an installation: created once, reused, renewed before they expire or on request; Secrets of users
stay.
"""

import base64
import itertools
from collections.abc import Mapping

import pytest
from dynamo_admission.tls import pki
from dynamo_ctl.commands.bootstrap.plan import SecretStep, manifest, plan
from dynamo_ctl.commands.bootstrap.specification import Certificate, NamespaceCredentials, User, load
from dynamo_ctl.errors import CtlError
from dynamo_shared.api.objects import KubeObject

NOW = 1_800_000_000.0
DAY = 86400.0
NAMES = ("platform-etcd-0.platform-etcd-members.dynamo-system.svc", "127.0.0.1")
DESIRED = NamespaceCredentials(
    labels={"app.kubernetes.io/instance": "platform"},
    authorities=("etcd-authority",),
    certificates=(
        Certificate(secret="etcd-server", authority="etcd-authority", common_name="platform-etcd", names=NAMES),
        Certificate(secret="watcher-etcd", authority="etcd-authority", common_name="watcher", uses=("client",)),
    ),
    users=(User(service="watcher", secret="watcher-nats"), User(service="scaler", secret="scaler-nats")),
    keys=("session",),
    nats_authorization="nats-authorization",
)
ALL = {"session", "etcd-authority", "etcd-server", "watcher-etcd", "watcher-nats", "scaler-nats", "nats-authorization"}


def run(
    expected: NamespaceCredentials, observed: Mapping[str, KubeObject], now: float = NOW
) -> tuple[dict[str, KubeObject], set[str]]:
    """Run the command; returns the Secrets, and the names of the written ones."""
    numbers = itertools.count(int(now))
    steps = list(plan(expected, observed, now, lambda: f"secret-{next(numbers)}", lambda: bytes(32)))
    written = {step.name: manifest(step, "dynamo-system", expected) for step in steps if step.content is not None}
    return {**observed, **written}, set(written)


def data(secret: KubeObject, key: str) -> bytes:
    return base64.b64decode(secret["data"][key])


def test_all_secrets_are_created_in_an_empty_namespace() -> None:
    result, written = run(DESIRED, {})
    assert written == ALL
    authority = pki.certificates_of(data(result["etcd-authority"], "tls.crt"), "")[0]
    server = pki.certificates_of(data(result["etcd-server"], "tls.crt"), "")[0]
    assert pki.signed_by(server, authority)
    assert set(pki.names_of(server)) == set(NAMES)
    assert data(result["etcd-server"], "ca.crt") == data(result["etcd-authority"], "tls.crt")
    assert "tls.key" in result["watcher-etcd"]["data"]
    assert base64.b64decode(data(result["session"], "key")) == bytes(32)
    assert data(result["watcher-nats"], "user") == b"watcher"
    passwords = {data(result[name], "password").decode() for name in ("watcher-nats", "scaler-nats")}
    assert len(passwords) == 2
    assert all(password in data(result["nats-authorization"], "authorization.conf").decode() for password in passwords)


def test_a_second_run_writes_nothing() -> None:
    result, _ = run(DESIRED, {})
    assert run(DESIRED, result)[1] == set()
    assert run(DESIRED, result, NOW + 3000 * DAY)[1] == set()


def test_users_of_the_last_releases_stay_in_one_secret() -> None:
    """Earlier releases left one Secret each. During an upgrade, members of NATS may restart with the users of the last
    release.
    """
    there, expected = run(DESIRED, {})[0], ["authorization.conf"]

    def upgrade(name: str) -> set[str]:
        nonlocal there
        entry = {"nats_authorization_entry": name}
        there, written = run(DESIRED.model_copy(update=entry), there)
        return written

    for number in range(1, 6):
        assert upgrade(f"{number}.conf") == {"nats-authorization"}
        assert upgrade(f"{number}.conf") == set()
        expected.append(f"{number}.conf")
        assert sorted(there["nats-authorization"]["data"]) == sorted(expected[-5:])
    users = there["nats-authorization"]["data"]
    assert upgrade("2.conf") == {"nats-authorization"}, "a rollback makes it the newest"
    assert there["nats-authorization"]["data"] == users
    assert upgrade("6.conf") == {"nats-authorization"}
    assert set(there["nats-authorization"]["data"]) == {"2.conf", "3.conf", "4.conf", "5.conf", "6.conf"}
    (step,) = (
        each
        for each in plan(
            DESIRED.model_copy(update={"nats_authorization_entry": "7.conf"}), there, NOW, lambda: "", lambda: b""
        )
        if each.name == "nats-authorization"
    )
    assert step.removed == {"3.conf"}


def test_users_from_before_a_rotation_are_removed() -> None:
    """A rollback creates new passwords, and NATS must not start with the users of before."""
    first = DESIRED.model_copy(update={"nats_authorization_entry": "1.conf"})
    second = DESIRED.model_copy(update={"nats_authorization_entry": "2.conf", "rotation": "2026-11"})
    there = run(first, {})[0]
    (step,) = (
        each for each in plan(second, there, NOW + 1, lambda: "new", lambda: b"") if each.name == "nats-authorization"
    )
    assert step.removed == {"1.conf"}
    there = run(second, there, NOW + 1)[0]
    assert set(there["nats-authorization"]["data"]) == {"2.conf"}
    there = run(first, there, NOW + 2)[0]
    assert set(there["nats-authorization"]["data"]) == {"1.conf"}
    assert run(first, there, NOW + 3)[1] == set()


def test_users_that_a_user_has_written_need_no_annotation() -> None:
    there = run(DESIRED, {})[0]
    there["nats-authorization"]["metadata"] = {"name": "nats-authorization"}
    assert run(DESIRED, there)[1] == set()


@pytest.mark.parametrize(
    ("gone", "written"),
    [
        ("watcher-etcd", {"watcher-etcd"}),
        ("watcher-nats", {"watcher-nats", "nats-authorization"}),
        ("nats-authorization", {"nats-authorization"}),
        ("etcd-authority", {"etcd-authority", "etcd-server", "watcher-etcd"}),
    ],
)
def test_missing_secrets_are_created_with_their_dependents(gone: str, written: set[str]) -> None:
    result, _ = run(DESIRED, {})
    del result[gone]
    assert run(DESIRED, result, NOW + 1)[1] == written


def test_a_changed_rotation_renews_all_but_the_authority() -> None:
    result, _ = run(DESIRED, {})
    rotated = DESIRED.model_copy(update={"rotation": "2026-11"})
    again, written = run(rotated, result, NOW + DAY)
    assert written == ALL - {"etcd-authority"}
    assert run(rotated, again)[1] == set()


def test_certificates_are_renewed_within_their_last_month() -> None:
    short = DESIRED.model_copy(update={"certificate_validity": 90 * DAY})
    result, _ = run(short, {})
    assert run(short, result, NOW + 59 * DAY)[1] == set()
    assert run(short, result, NOW + 61 * DAY)[1] == {"etcd-server", "watcher-etcd"}


def test_a_certificate_is_recreated_if_its_names_change() -> None:
    result, _ = run(DESIRED, {})
    server = DESIRED.certificates[0].model_copy(update={"names": (*NAMES, "another.svc")})
    wider = DESIRED.model_copy(update={"certificates": (server, DESIRED.certificates[1])})
    assert run(wider, result)[1] == {"etcd-server"}


def test_secrets_of_the_user_are_never_rotated() -> None:
    result, _ = run(DESIRED, {})
    # Of a file, as `kubectl create secret generic --from-file` takes it.
    password = {"password": base64.b64encode(b"theirs\n").decode()}
    theirs = {**result["watcher-nats"], "metadata": {"name": "watcher-nats", "labels": {}}, "data": password}
    with pytest.raises(CtlError, match="Secret watcher-nats: password is not UTF-8 text; write another one"):
        run(DESIRED, {**result, "watcher-nats": {**theirs, "data": {"password": "/w=="}}})
    rotated = DESIRED.model_copy(update={"rotation": "now"})
    again, written = run(rotated, {**result, "watcher-nats": theirs}, NOW + DAY)
    assert "watcher-nats" not in written
    assert '"theirs"' in data(again["nats-authorization"], "authorization.conf").decode()


def test_a_step_that_keeps_a_secret_does_not_contain_it() -> None:
    result, _ = run(DESIRED, {})
    kept: list[SecretStep] = list(plan(DESIRED, result, NOW, lambda: "unused", lambda: b""))
    assert [step.content for step in kept] == [None] * len(ALL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("certificates: [{secret: a}]", r"certificates\[0\]\.authority: required"),
        ("user: []", "user: no such field"),
        ("certificates: [{secret: a, authority: b, common_name: c}]", "certificates: authorities does not list b"),
        ("{", "is not valid YAML"),
        ("labels: {a: b, a: c}", "the key 'a' is given twice"),
        ("[]", "must have exactly one object: a specification of Secrets"),
        ("labels: \udcff", "is not UTF-8 text"),
    ],
)
def test_a_wrong_specification_is_refused_with_its_field(tmp_path, text: str, message: str) -> None:
    file = tmp_path / "credentials.yaml"
    file.write_text(text, errors="surrogateescape")
    with pytest.raises(CtlError, match=message):
        load(file)
