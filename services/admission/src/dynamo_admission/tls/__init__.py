"""The certificates of the webhooks, made in one of three ways: by ourselves, by cert-manager, or given as files."""

from dynamo_admission.tls.certificates import Certificates, Unusable
from dynamo_admission.tls.opening import open_certificates

__all__ = ["Certificates", "Unusable", "open_certificates"]
