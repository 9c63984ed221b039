"""The certificates of the webhooks, from one of three sources: this service, cert-manager, or files of the user."""

import time
from collections.abc import Sequence

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Settings
from dynamo_shared.runtime.settings.operator import CertProvisionMode

from dynamo_admission.address import namespace_of
from dynamo_admission.tls.certificates import Certificates, Clock
from dynamo_admission.tls.clients import ClientAuthorities
from dynamo_admission.tls.file_certificates import FileCertificates
from dynamo_admission.tls.own_ca import OwnCertificates
from dynamo_admission.tls.pki import Unusable
from dynamo_admission.tls.secret import SecretStore
from dynamo_admission.tls.timing import Timing

__all__ = ["Certificates", "Unusable", "open_certificates"]


async def open_certificates(
    settings: Settings, kube: KubeClient, names: Sequence[str], clock: Clock = time.time
) -> Certificates:
    """The certificates that the settings name, ready to serve. `names`: DNS names and IP addresses, first the one that
    the API server verifies.

    Raises Unusable with advice, and in mode auto KubeError.
    """
    webhook, admission = settings.server.webhook, settings.platform.admission
    clients = ClientAuthorities(admission.client_ca_file)
    namespace = namespace_of(settings)
    timing = Timing.of(admission.ca_validity, admission.certificate_validity)
    if webhook.cert_provision_mode is CertProvisionMode.AUTO:
        own = OwnCertificates(
            SecretStore(kube, ObjectKey(namespace, webhook.secret_name)), names, clock, timing, clients
        )
        await own.refresh()
        return own
    inject_from = ""
    if webhook.cert_provision_mode is CertProvisionMode.CERT_MANAGER:
        inject_from = f"{namespace}/{admission.certificate or webhook.secret_name}"
    return FileCertificates(webhook.cert_dir, names[0], clock, timing, inject_from=inject_from, clients=clients)
