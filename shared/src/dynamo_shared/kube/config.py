"""The connection to a cluster: kubeconfig or in-cluster, read by kubernetes_asyncio, converted for the transport.

Refuses unsafe connections: TLS is always verified, and credentials are never sent in clear text, except to this machine
(`kubectl proxy`).
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from dynamo_shared.api.untrusted.reading import items, mapping
from dynamo_shared.api.untrusted.yaml_text import mistake
from dynamo_shared.kube import upstream
from dynamo_shared.kube.credentials import (
    LOGIN_TIMEOUT_SECONDS,
    ConfigError,
    Credentials,
    LoadedConfiguration,
    LoginCredentials,
    TokenFile,
)
from dynamo_shared.kube.oidc import loader_class, token_expiry
from dynamo_shared.kube.proxies import proxy_for

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server and its access. `server` has no trailing slash; `tls` is None for plain http."""

    server: str
    tls: ssl.SSLContext | None
    tls_server_name: str | None
    proxy: str | None
    credentials: Credentials
    namespace: str


async def load(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The connection of a kubeconfig; by default of $KUBECONFIG, ~/.kube/config, or this process's pod, in this order.

    Raises ConfigError, which says what to do.
    """
    environ = os.environ if environ is None else environ
    paths = _kubeconfig_paths(kubeconfig, environ)
    try:
        if paths:
            async with asyncio.timeout(LOGIN_TIMEOUT_SECONDS):
                return await _from_kubeconfig(paths, context, environ)
        if environ.get("KUBERNETES_SERVICE_HOST"):
            return _in_cluster(environ, service_account)
    except TimeoutError as error:
        raise ConfigError(f"login to the cluster took longer than {LOGIN_TIMEOUT_SECONDS:.0f} s") from error
    except ConfigError:
        raise
    except Exception as error:
        # An invalid file makes the library raise any type of exception. The user has to repair the file in all cases.
        raise ConfigError(f"cannot use {paths or 'the service account'}: {error}") from error
    raise ConfigError("no cluster configured: use --kubeconfig, set KUBECONFIG, or run in a pod with a service account")


def namespace(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> str:
    """The namespace of the connection that `load` returns, without login: for programs that do not call the cluster.

    It is `default` if there is no cluster. Raises ConfigError like `load` for all other errors.
    """
    environ = os.environ if environ is None else environ
    try:
        paths = _kubeconfig_paths(kubeconfig, environ)
    except ConfigError:
        if kubeconfig is not None:
            raise
        paths = ""
    try:
        if paths:
            return _namespace_of(_context(paths, _merged(paths).config.value, context))
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"cannot use {paths}: {error}") from error
    in_pod = bool(environ.get("KUBERNETES_SERVICE_HOST"))
    return (in_pod and pod_namespace(environ, service_account)) or DEFAULT_NAMESPACE


def _kubeconfig_paths(kubeconfig: Path | None, environ: Mapping[str, str]) -> str:
    if kubeconfig is not None:
        if not kubeconfig.expanduser().is_file():
            raise ConfigError(f"kubeconfig does not exist: {kubeconfig}")
        return str(kubeconfig)
    named = environ.get("KUBECONFIG", "")
    if named:
        present = [path for path in named.split(os.pathsep) if path and Path(path).expanduser().is_file()]
        if not present:
            raise ConfigError(f"kubeconfig does not exist: {named} (from KUBECONFIG)")
        return os.pathsep.join(present)
    default = Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config"
    return str(default) if default.is_file() else ""


def _holds_something(path: str) -> bool:
    """Whether a kubeconfig has content: like kubectl, treat an empty one as missing."""
    try:
        content = yaml.safe_load(Path(path).expanduser().read_bytes())
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} {mistake(error)}") from None
    if content is not None and not isinstance(content, dict):
        raise ConfigError(f"{path} is not a kubeconfig: it must have apiVersion: v1 and kind: Config")
    return content is not None


def _in_cluster(environ: Mapping[str, str], service_account: Path) -> Connection:
    settings = LoadedConfiguration()
    token_file = service_account / "token"
    upstream.load().incluster_config.InClusterConfigLoader(
        str(token_file), str(service_account / "ca.crt"), try_refresh_token=False, environ=dict(environ)
    ).load_and_set(settings)
    credentials = TokenFile(token_file, service_account / "ca.crt", lambda: _tls(settings))
    return _connection(settings, credentials, environ, pod_namespace(environ, service_account) or DEFAULT_NAMESPACE)


def pod_namespace(environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> str:
    """The namespace of this process's pod: like kubectl, from POD_NAMESPACE or the service account; "" if unknown."""
    if name := environ.get("POD_NAMESPACE"):
        return name
    file = service_account / "namespace"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def _merged(paths: str) -> Any:
    """The merger of the kubeconfigs. Raises ConfigError if they have no context."""
    filled = [path for path in paths.split(os.pathsep) if _holds_something(path)]
    merger = upstream.load().kube_config.KubeConfigMerger(os.pathsep.join(filled)) if filled else None
    if merger is None or not merger.config.value.get("contexts"):
        raise ConfigError(f"{paths} has no context: add one, or use another file with --kubeconfig")
    return merger


def _context(paths: str, config: Mapping[str, Any], context: str | None) -> Mapping[str, Any]:
    """The chosen context. Raises ConfigError if the file does not have it, or if it has no current context."""
    contexts = [mapping(getattr(each, "value", None)) for each in items(config["contexts"])]
    named = {str(each["name"]): mapping(each.get("context")) for each in reversed(contexts) if each.get("name")}
    chosen = context or config.get("current-context")
    if named and chosen not in named:
        lacks = f"has no context {chosen}" if chosen else "has no current context"
        raise ConfigError(f"{paths} {lacks}: choose one of {', '.join(sorted(named))} with --context")
    return named.get(str(chosen), {})


def _namespace_of(context: Mapping[str, Any]) -> str:
    return str(context.get("namespace") or DEFAULT_NAMESPACE)


async def _from_kubeconfig(paths: str, context: str | None, environ: Mapping[str, str]) -> Connection:
    library = upstream.load().kube_config
    merger = _merged(paths)
    namespace = _namespace_of(_context(paths, merger.config.value, context))

    def new_loader() -> Any:
        loader = loader_class()(
            config_dict=merger.config,
            config_base_path=None,
            active_context=context,
            # Upstream passes the configuration to a method without parameters; rotated refresh tokens would be lost.
            config_persister=lambda _config: merger.save_changes(),
        )
        if loader._user is None:
            loader._user = library.ConfigNode("user", {})
        return loader

    async def login() -> tuple[LoadedConfiguration, float | None, ssl.SSLContext | None]:
        loader, settings = new_loader(), LoadedConfiguration()
        # The library writes keys into files, because TLS contexts are loaded from files. Delete them as soon as possible.
        try:
            await loader.load_and_set(settings)
            tls = _tls(settings)
            # If the plugin does not report the expiry of its certificate, read it from the certificate. A user's files
            # are read again when the API server refuses the last ones.
            certificate_ends = _end_of(settings.cert_file) if settings.cert_file and "exec" in loader._user else None
        finally:
            library._cleanup_temp_files()
        expiry = getattr(loader, "exec_plugin_expiry", None)
        credential_ends = expiry.timestamp() if expiry is not None else token_expiry(settings.authorization)
        ends = [each for each in (credential_ends, certificate_ends) if each is not None]
        return settings, min(ends, default=None), tls

    async def renew() -> tuple[str | None, float | None, ssl.SSLContext | None]:
        async with asyncio.timeout(LOGIN_TIMEOUT_SECONDS):
            renewed, expires_at, tls = await login()
        # If only the token changed, open connections remain usable.
        return renewed.authorization, expires_at, tls if renewed.cert_file else None

    settings, expires_at, tls = await login()
    user = new_loader()._user
    credentials: Credentials
    if "exec" in user or "auth-provider" in user or "client-certificate" in user:
        credentials = LoginCredentials(renew, settings.authorization, expires_at)
    elif "tokenFile" in user and "token" not in user:
        credentials = TokenFile(Path(user.path or paths).parent / user["tokenFile"])
    else:
        credentials = Credentials(settings.authorization)
    return _connection(settings, credentials, environ, namespace, tls)


def _connection(
    settings: LoadedConfiguration,
    credentials: Credentials,
    environ: Mapping[str, str],
    namespace: str,
    tls: ssl.SSLContext | None = None,
) -> Connection:
    server = settings.host.rstrip("/")
    if not server:
        raise ConfigError("the cluster in the kubeconfig has no server")
    proxy = settings.proxy or proxy_for(server, environ)
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigError(f"proxies of type {urlsplit(proxy).scheme}:// are not supported: use an HTTP proxy")
    return Connection(
        server=server,
        tls=tls or _tls(settings),
        tls_server_name=settings.tls_server_name,
        proxy=proxy,
        credentials=credentials,
        namespace=namespace,
    )


def _end_of(certificate: str) -> float:
    """The expiry of a certificate in seconds since the epoch. Raises ValueError if the file has no certificate."""
    # The import takes some MiB, and only plugins that return certificates need it.
    from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415

    return load_pem_x509_certificate(Path(certificate).read_bytes()).not_valid_after_utc.timestamp()


def _tls(settings: LoadedConfiguration) -> ssl.SSLContext | None:
    """The TLS context of the settings."""
    if urlsplit(settings.host).scheme != "https":
        if settings.authorization and urlsplit(settings.host).hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ConfigError(f"credentials would be sent to {settings.host} without encryption: use https")
        return None
    if not settings.verify_ssl:
        raise ConfigError(
            "insecure-skip-tls-verify is not supported: set certificate-authority of the cluster in the kubeconfig"
        )
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    # Python 3.13 requires extensions (an authority key identifier) that cluster authorities often omit and no other
    # Kubernetes client requires. Chains, names and times are still verified.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if settings.cert_file:
        try:
            context.load_cert_chain(settings.cert_file, settings.key_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"cannot load the client certificate: {error}") from error
    return context
