"""Where the API server finds the webhooks: through a Service of the cluster, or straight at a URL."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dynamo_shared.runtime import InvalidSettings, Settings

DEFAULT_NAMESPACE = "dynamo-system"


@dataclass(frozen=True, slots=True)
class Address:
    """One of the two: `url`, or `service` of `namespace` on `port`."""

    namespace: str
    service: str = ""
    port: int = 443
    url: str = ""

    @property
    def host(self) -> str:
        """The name that the API server verifies the certificate against."""
        return urlsplit(self.url).hostname or "" if self.url else f"{self.service}.{self.namespace}.svc"

    @property
    def names(self) -> tuple[str, ...]:
        """What the certificate must be valid for, the verified name first."""
        return (self.host,) if self.url else (self.host, f"{self.host}.cluster.local", self.host.removesuffix(".svc"))

    def client_config(self, path: str) -> dict[str, Any]:
        """`clientConfig` of webhook configurations and CRDs, without its authorities."""
        if self.url:
            return {"url": self.url.rstrip("/") + path}
        service = {"namespace": self.namespace, "name": self.service, "path": path, "port": self.port}
        return {"service": service}


def namespace_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Namespace of the Service and of the Secret that holds the certificate."""
    return settings.platform.admission.namespace or environ.get("POD_NAMESPACE", "") or DEFAULT_NAMESPACE


def address_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> Address:
    """The address that the settings name; InvalidSettings where they name none."""
    admission, service = settings.platform.admission, settings.server.webhook.service_name
    if not (admission.url or service):
        raise InvalidSettings(
            "settings",
            [
                "the admission service needs server.webhook.serviceName, the Service by which the API server calls it; "
                "without one, platform.admission.url"
            ],
        )
    return Address(namespace_of(settings, environ), service, admission.service_port, admission.url)
