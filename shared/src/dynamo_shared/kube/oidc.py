"""The OIDC auth provider of kubeconfigs, in place of upstream's, which does not handle tokens safely.

kubernetes_asyncio 36 decodes the token with the wrong base64 alphabet (an umlaut in a name breaks it). It verifies the
issuer's certificate only if a CA is given, and then passes aiohttp a file name instead of a TLS context. It also
requires a client secret and a new refresh token, which are both optional.
"""

import base64
import binascii
import contextlib
import ssl
import time
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from dynamo_shared.kube import upstream
from dynamo_shared.kube.credentials import EXPIRY_MARGIN_SECONDS, ConfigError
from dynamo_shared.kube.exec_plugin import plugin_class


@cache
def loader_class() -> Any:
    """The library's KubeConfigLoader with this module's OIDC, and with exec plugins that end."""
    library = upstream.load()
    # The loader takes the class from its module.
    library.kube_config.ExecProvider = plugin_class()
    # The loader logs errors and also raises them: the caller of the login logs or shows them.
    library.kube_config.logger.disabled = True

    class Loader(library.kube_config.KubeConfigLoader):  # type: ignore[misc, name-defined]
        async def _load_oid_token(self) -> str:
            provider = self._user["auth-provider"]
            settings: dict[str, Any] = provider.value.get("config") or {}
            token = settings.get("id-token")
            expires_at = token_expiry(f"Bearer {token}")
            if not token or (expires_at is not None and time.time() >= expires_at - EXPIRY_MARGIN_SECONDS):
                settings.update(await _renewed(settings, self._get_base_path(self._user.path)))
                if self._config_persister:
                    self._config_persister(self._config.value)
            self.token = f"Bearer {settings['id-token']}"
            return self.token

    return Loader


def token_expiry(authorization: str | None) -> float | None:
    """`exp` of a bearer token that is a JWT, in seconds since the epoch; None for anything else."""
    if not authorization or not authorization.startswith("Bearer "):
        return None
    parts = authorization.removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return None
    with contextlib.suppress(binascii.Error, ValueError, OverflowError, RecursionError, msgspec.DecodeError):
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        if isinstance(claims, dict) and isinstance(claims.get("exp"), int | float):
            return float(claims["exp"])
    return None


async def _renewed(settings: dict[str, Any], base_path: str) -> dict[str, str]:
    """The provider settings that a refresh changes. Raises ConfigError if nothing allows a refresh."""
    if not settings.get("refresh-token"):
        raise ConfigError("oidc: the id-token has expired and there is no refresh-token: log in again")
    requestor = _requestor_class()(
        settings.get("client-id"), settings.get("client-secret") or "", settings.get("idp-issuer-url"), None
    )
    requestor.tls = _issuer_tls(settings, base_path)
    answer = await requestor.refresh_token(settings["refresh-token"])
    if not answer.get("id_token"):
        raise ConfigError("oidc: the issuer returned no id_token: log in again")
    renewed: dict[str, str] = {"id-token": answer["id_token"]}
    if answer.get("refresh_token"):
        renewed["refresh-token"] = answer["refresh_token"]
    return renewed


@cache
def _requestor_class() -> Any:
    class Requestor(upstream.load().openid.OpenIDRequestor):  # type: ignore[misc]
        tls: ssl.SSLContext

        def _get_connector(self) -> aiohttp.TCPConnector:
            return aiohttp.TCPConnector(ssl=self.tls)

    return Requestor


def _issuer_tls(settings: dict[str, Any], base_path: str) -> ssl.SSLContext:
    if data := settings.get("idp-certificate-authority-data"):
        return ssl.create_default_context(cadata=base64.b64decode(data).decode())
    if file := settings.get("idp-certificate-authority"):
        return ssl.create_default_context(cafile=str(Path(base_path) / file))
    return ssl.create_default_context()
