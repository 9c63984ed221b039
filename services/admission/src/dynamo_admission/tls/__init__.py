"""The certificates of the webhooks, made in one of three ways: by ourselves, by cert-manager, or given as files."""

from dynamo_admission.tls.certificates import Certificates
from dynamo_admission.tls.opening import open_certificates
from dynamo_admission.tls.pki import Unusable

__all__ = ["Certificates", "Unusable", "open_certificates"]
