"""The address of the webhooks for the API server: a Service of the cluster, or a URL."""

import os
from collections.abc import Mapping

from dynamo_shared.runtime import InvalidSettings, Settings

from dynamo_admission.registration import Address

DEFAULT_NAMESPACE = "dynamo-system"


def namespace_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Namespace of the Service and of the Secret that holds the certificate."""
    return settings.platform.admission.namespace or environ.get("POD_NAMESPACE", "") or DEFAULT_NAMESPACE


def address_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> Address:
    """The address from the settings; InvalidSettings if they have none."""
    admission, service = settings.platform.admission, settings.server.webhook.service_name
    if not (admission.url or service):
        raise InvalidSettings(
            "settings",
            [
                "the admission service needs server.webhook.serviceName, the Service that the API server calls; without a "
                "Service, set platform.admission.url"
            ],
        )
    return Address(namespace_of(settings, environ), service, admission.service_port, admission.url)
