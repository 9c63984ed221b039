"""The certificates of the webhooks, from one of three sources: this service, cert-manager, or files of the user."""

from dynamo_admission.tls.certificates import Certificates
from dynamo_admission.tls.factory import open_certificates
from dynamo_admission.tls.pki import Unusable

__all__ = ["Certificates", "Unusable", "open_certificates"]
