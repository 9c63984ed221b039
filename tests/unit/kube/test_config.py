"""Connecting to a cluster: kubeconfigs of all kinds, service accounts of pods, and rejected settings."""

import base64
import json
import os
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from dynamo_devcluster.certs import CertificateAuthority
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.kube import ConfigError, KubeClient
from dynamo_shared.kube.config import load, namespace
from dynamo_shared.kube.credentials import TokenFile
from dynamo_shared.kube.oidc import token_expiry
from dynamo_shared.runtime.endpoints import serving

from tests.building.tables import rows

from .users import by_plugin


async def test_a_token(write: Any) -> None:
    connection = await load(write({"token": "secret"}), environ={})
    assert connection.server == "https://api.example.com:6443"
    assert connection.namespace == "team"
    assert connection.credentials.authorization == "Bearer secret"
    assert connection.tls is not None
    assert connection.tls.verify_mode is ssl.CERT_REQUIRED
    assert connection.tls.check_hostname


async def test_a_ca_need_not_have_every_extension(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create = ssl.create_default_context

    def strict(*arguments: Any, **options: Any) -> ssl.SSLContext:
        """Strict verification like Python 3.13."""
        context = create(*arguments, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    connection = await load(write({"token": "secret"}), environ={})
    assert connection.tls is not None
    assert not connection.tls.verify_flags & ssl.VERIFY_X509_STRICT
    assert connection.tls.verify_mode is ssl.CERT_REQUIRED
    assert connection.tls.check_hostname


@pytest.mark.parametrize(("user", "shown"), [({"username": "a", "password": "b"}, "Basic YTpi"), (None, None)])
async def test_a_user_with_a_password_and_an_anonymous_user(
    write: Any, user: dict[str, Any] | None, shown: str | None
) -> None:
    assert (await load(write(user), environ={})).credentials.authorization == shown


async def test_a_token_file_is_read_again_after_a_minute(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    credentials = (await load(write({"tokenFile": "token"}), environ={})).credentials
    assert isinstance(credentials, TokenFile)
    assert credentials.authorization == "Bearer one"
    assert not credentials.stale()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    file.write_text("two")
    assert credentials.stale()
    assert await credentials.refresh()
    assert credentials.authorization == "Bearer two"
    file.unlink()
    assert not await credentials.refresh(force=True)
    assert credentials.authorization == "Bearer two"


async def test_the_cas_of_a_pods_cluster_are_read_again_after_a_minute(
    tmp_path: Path, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("one")
    old = authority.certificate.read_bytes()
    (tmp_path / "ca.crt").write_bytes(old)
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = await load(None, environ=environ, service_account=tmp_path)
    credentials = connection.credentials
    assert connection.tls is not None
    assert not await credentials.refresh()
    # A half-written file: the trusted CAs stay, and the token is still renewed.
    (tmp_path / "ca.crt").write_bytes(old[:200])
    (tmp_path / "token").write_text("two")
    assert await credentials.refresh()
    assert (credentials.tls, credentials.authorization) == (None, "Bearer two")
    successor = CertificateAuthority(tmp_path / "successor")
    (tmp_path / "ca.crt").write_bytes(old + successor.certificate.read_bytes())
    assert await credentials.refresh()
    assert credentials.tls is not None
    assert credentials.tls.cert_store_stats()["x509_ca"] == connection.tls.cert_store_stats()["x509_ca"] + 1
    assert credentials.tls.verify_mode is ssl.CERT_REQUIRED


async def test_embedded_keys_leave_no_files(
    write: Any, authority: CertificateAuthority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = authority.client("person")
    user = {
        "client-certificate-data": base64.b64encode(pair.certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(pair.key.read_bytes()).decode(),
    }
    ca = base64.b64encode(authority.certificate.read_bytes()).decode()
    path = write(user, **{"certificate-authority": None, "certificate-authority-data": ca})
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    # Twice, because upstream caches the files that it wrote.
    for _ in range(2):
        assert (await load(path, environ={})).tls is not None
    assert list(folder.iterdir()) == []


def server_tls(authority: CertificateAuthority, name: str, clients: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    pair = authority.server(name)
    tls.load_cert_chain(pair.certificate, pair.key)
    tls.verify_mode = clients
    return tls


def jwt(expires: float) -> str:
    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'exp': expires, 'name': '??>>~~'})}.sig"


async def test_oidc_tokens_are_renewed_over_verified_tls_and_cached(
    write: Any, authority: CertificateAuthority
) -> None:
    fresh = jwt(time.time() + 3600)
    asked: list[dict[str, Any]] = []

    async def well_known(request: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": f"https://127.0.0.1:{request.url.port}/token"})

    async def token(request: web.Request) -> web.Response:
        asked.append(dict(await request.post()))
        return web.json_response({"id_token": fresh, "refresh_token": "second"})

    application = web.Application()
    application.router.add_get("/.well-known/openid-configuration", well_known)
    application.router.add_post("/token", token)
    async with serving(application, "127.0.0.1", 0, server_tls(authority, "issuer")) as port:
        provider: dict[str, Any] = {
            "client-id": "id",
            "client-secret": "secret",
            "idp-issuer-url": f"https://127.0.0.1:{port}",
            "id-token": jwt(time.time() - 10),
            "refresh-token": "first",
        }
        user = {"auth-provider": {"name": "oidc", "config": provider}}
        # Without its CA the issuer is not trusted.
        with pytest.raises(ConfigError):
            await load(write(user, "unverified"), environ={})
        assert asked == []
        provider["idp-certificate-authority-data"] = base64.b64encode(authority.certificate.read_bytes()).decode()
        path = write(user)
        credentials = (await load(path, environ={})).credentials
    assert credentials.authorization == f"Bearer {fresh}"
    assert asked == [{"grant_type": "refresh_token", "refresh_token": "first"}]
    kept = yaml.safe_load(path.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert (kept["id-token"], kept["refresh-token"]) == (fresh, "second")
    # A later start needs no issuer.
    assert (await load(path, environ={})).credentials.authorization == f"Bearer {fresh}"


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (f"Bearer {jwt(1234)}", 1234.0),
        (None, None),
        ("Basic abc", None),
        ("Bearer abc", None),
        ("Bearer a.b.c", None),
        ("Bearer a.!.c", None),
        (f"Bearer {jwt(10**400)}", None),
        (f"Bearer a.{'W1tb' * 2000}.c", None),
    ],
    ids=["jwt", "none", "basic", "opaque", "not JSON", "not base64", "a number beyond all", "nested too deep"],
)
def test_the_expiry_of_a_token(authorization: str | None, expected: float | None) -> None:
    assert token_expiry(authorization) == expected


def _printing(status: str) -> dict[str, Any]:
    return by_plugin("/bin/echo", f'{{"apiVersion": "client.authentication.k8s.io/v1", "status": {status}}}')


ENDED = {"idp-issuer-url": "https://issuer.example.com", "client-id": "a", "id-token": jwt(time.time() - 10)}
NO_CREDENTIAL = "returned no valid ExecCredential"
#: A user, the rest of the cluster, and the reason for the rejection.
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a plugin that fails is quoted": (
        by_plugin("/bin/sh", "-c", "echo no >&2; exit 3"),
        {},
        r"exec: /bin/sh: process returned 3\. no",
    ),
    "a plugin that is not installed is named": (
        by_plugin("no-such-auth-plugin"),
        {},
        "exec: cannot start no-such-auth-plugin: No such file or directory",
    ),
    "a plugin prints a word": (by_plugin("/bin/echo", "no"), {}, NO_CREDENTIAL),
    "a plugin prints a list": (by_plugin("/bin/echo", "[]"), {}, NO_CREDENTIAL),
    "a plugin prints no status": (
        by_plugin("/bin/echo", '{"kind": "ExecCredential"}'),
        {},
        f"{NO_CREDENTIAL}: KeyError",
    ),
    "a plugin of another version": (
        by_plugin("/bin/echo", '{"apiVersion": "v0", "status": {}}'),
        {},
        "the plugin returned apiVersion v0",
    ),
    "a plugin prints an empty status": (_printing("null"), {}, NO_CREDENTIAL),
    "a plugin prints neither of both": (_printing("{}"), {}, "neither a token nor a client certificate"),
    "a plugin prints a certificate alone": (
        _printing('{"clientCertificateData": "x"}'),
        {},
        "neither a token nor a client certificate with its key",
    ),
    "OIDC without a way to renew": ({"auth-provider": {"name": "oidc", "config": ENDED}}, {}, "log in again"),
    "a certificate that is not there": ({"client-certificate": "absent.crt", "client-key": "absent.key"}, {}, "absent"),
    "unverified TLS": ({"token": "t"}, {"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify is not supported"),
    "clear text": ({"token": "t"}, {"server": "http://api.example.com"}, "without encryption"),
    "a proxy of another kind": ({"token": "t"}, {"proxy-url": "socks5://proxy:1080"}, "socks5"),
}


@rows("user, cluster, message", REFUSED)
async def test_unusable_settings_are_rejected_with_the_reason(
    write: Any, user: dict[str, Any], cluster: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigError, match=message):
        await load(write(user, **cluster), environ={})
    # The library would also log a failed login.
    assert caplog.messages == []


async def test_plain_http_is_for_this_machine_only(write: Any) -> None:
    assert (await load(write({"token": "t"}, server="http://127.0.0.1:8001"), environ={})).tls is None
    assert (await load(write(server="http://proxy.example.com"), environ={})).tls is None


async def test_server_name_and_proxies(write: Any) -> None:
    path = write(**{"tls-server-name": "kubernetes", "proxy-url": "http://proxy:3128"})
    connection = await load(path, environ={"HTTPS_PROXY": "http://other:1"})
    assert (connection.tls_server_name, connection.proxy) == ("kubernetes", "http://proxy:3128")
    assert (await load(write(), environ={"HTTPS_PROXY": "http://other:1"})).proxy == "http://other:1"


async def test_the_search_order_of_kubeconfigs(write: Any, tmp_path: Path) -> None:
    first, second = write({"token": "first"}, "first"), write({"token": "second"}, "second")
    named = os.pathsep.join([str(tmp_path / "absent"), str(second), str(first)])
    environ = {"KUBECONFIG": named, "HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    # An argument has precedence, then KUBECONFIG (the first file that defines a name), then the home directory.
    assert (await load(first, environ=environ)).credentials.authorization == "Bearer first"
    assert (await load(None, environ=environ)).credentials.authorization == "Bearer second"
    (tmp_path / ".kube").mkdir()
    write({"token": "home"}, ".kube/config")
    assert (await load(None, environ={"HOME": str(tmp_path)})).credentials.authorization == "Bearer home"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "broken has no context: "),
        ("# nothing", "broken has no context: "),
        ("[]", "broken is not a kubeconfig: "),
        ("a: [", "broken is not valid YAML: line 1, column 5: "),
        ('users: [{token: "hunter2}]', "broken is not valid YAML: line 1, column 27: "),
        ("current-context: x", "broken has no context: "),
        ("contexts: [{name: b}, {name: a}]", "broken has no current context: choose one of a, b with --context"),
        ("contexts: 5", "cannot use "),
        ("current-context: x\ncontexts: [{}]", "cannot use "),
    ],
)
async def test_broken_kubeconfigs_are_config_errors_of_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "broken"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message) as refused:
        await load(path, environ={})
    assert "\n" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


async def test_an_empty_kubeconfig_among_others_is_ignored(write: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    named = os.pathsep.join([str(tmp_path / "empty"), str(write({"token": "other"}, "other"))])
    assert (await load(None, environ={"KUBECONFIG": named})).credentials.authorization == "Bearer other"


async def test_missing_kubeconfigs_are_reported(write: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="kubeconfig does not exist"):
        await load(tmp_path / "absent", environ={})
    with pytest.raises(ConfigError, match="from KUBECONFIG"):
        await load(None, environ={"KUBECONFIG": str(tmp_path / "absent")})
    with pytest.raises(ConfigError, match="--kubeconfig"):
        await load(None, environ={"HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"config has no context two: choose one of one with --context$"):
        await load(write(), "two", environ={})


async def test_in_a_pod(tmp_path: Path, authority: CertificateAuthority) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "namespace").write_text("dynamo-system")
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = await load(None, environ=environ, service_account=tmp_path)
    assert connection.server == "https://[fd00::1]:443"
    assert connection.namespace == "dynamo-system"
    assert connection.credentials.authorization == "Bearer pod-token"
    (tmp_path / "token").unlink()
    with pytest.raises(ConfigError, match="token"):
        await load(None, environ=environ, service_account=tmp_path)


@pytest.mark.parametrize(
    ("contexts", "context", "expected"),
    [
        ([{"name": "a", "context": {"namespace": "team"}}, {"name": "b"}], None, "team"),
        ([{"name": "a", "context": {"namespace": "team"}}, {"name": "b"}], "b", "default"),
        # Like kubectl, the first of several contexts with one name.
        ([{"name": "a", "context": {"namespace": "one"}}, {"name": "a", "context": {"namespace": "two"}}], None, "one"),
    ],
)
def test_a_namespace_needs_no_login(tmp_path: Path, contexts: list[Any], context: str | None, expected: str) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump({"contexts": contexts, "current-context": "a"}))
    assert namespace(file, context, environ={}) == expected
    assert namespace(None, context, environ={"KUBECONFIG": f"{tmp_path / 'absent'}:{file}"}) == expected


def test_the_namespace_without_a_kubeconfig_is_that_of_the_pod_or_default(tmp_path: Path) -> None:
    nowhere = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "absent")}
    pod = {**nowhere, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert namespace(environ=nowhere, service_account=tmp_path) == "default"
    assert namespace(environ=pod, service_account=tmp_path) == "default"
    (tmp_path / "namespace").write_text("team\n")
    assert namespace(environ=nowhere, service_account=tmp_path) == "default"
    assert namespace(environ=pod, service_account=tmp_path) == "team"
    assert namespace(environ={**pod, "POD_NAMESPACE": "other"}, service_account=tmp_path) == "other"


def test_a_namespace_of_an_unusable_kubeconfig_is_an_error(write: Any, tmp_path: Path) -> None:
    for path, context, message in (
        (tmp_path / "absent", None, "does not exist"),
        (write(), "two", "has no context two"),
    ):
        with pytest.raises(ConfigError, match=message):
            namespace(path, context, environ={})


def shown_by(request: web.Request) -> str:
    """The name in a client's certificate."""
    assert request.transport is not None
    name: str = dict(item[0] for item in request.transport.get_extra_info("peercert")["subject"])["commonName"]
    return name


async def test_the_client_certificate_is_sent_and_the_server_is_verified(
    write: Any, authority: CertificateAuthority, tmp_path: Path
) -> None:
    async def whoami(request: web.Request) -> web.Response:
        return web.json_response({"user": shown_by(request)})

    application = web.Application()
    application.router.add_get("/{path:.*}", whoami)
    person = authority.client("person")
    user = {"client-certificate": str(person.certificate), "client-key": str(person.key)}
    async with serving(application, "127.0.0.1", 0, server_tls(authority, "api", ssl.CERT_REQUIRED)) as port:
        server = f"https://127.0.0.1:{port}"
        async with await KubeClient.open(kubeconfig=write(user, server=server)) as client:
            assert await client.get(PODS, ObjectKey("a", "b")) == {"user": "person"}
        stranger = CertificateAuthority(tmp_path / "stranger").certificate
        path = write(user, "other", server=server, **{"certificate-authority": str(stranger)})
        async with await KubeClient.open(kubeconfig=path, timeout=1) as client:
            with pytest.raises(Exception, match=r"(?i)certificate verify failed"):
                await client.create(PODS, {"metadata": {"name": "a"}})


async def test_a_renewed_client_certificate_is_used_at_once(
    write: Any, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """Like an API server, which checks the certificate of the connection for each of its requests."""

    async def only_new(request: web.Request) -> web.Response:
        user = shown_by(request)
        return web.json_response({"user": user}, status=200 if user == "new" or not has_ended else 401)

    has_ended = False
    application = web.Application()
    application.router.add_get("/{path:.*}", only_new)
    old, new = authority.client("old"), authority.client("new")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(old.certificate.read_bytes())
    key.write_bytes(old.key.read_bytes())
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    async with serving(application, "127.0.0.1", 0, server_tls(authority, "api-2", ssl.CERT_REQUIRED)) as port:
        server = f"https://127.0.0.1:{port}"
        async with await KubeClient.open(kubeconfig=write(user, server=server)) as client:
            for _ in range(2):
                assert await client.get(PODS, ObjectKey("a", "b")) == {"user": "old"}
            certificate.write_bytes(new.certificate.read_bytes())
            key.write_bytes(new.key.read_bytes())
            has_ended = True
            assert await client.get(PODS, ObjectKey("a", "b")) == {"user": "new"}
