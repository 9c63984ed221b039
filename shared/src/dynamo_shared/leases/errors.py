"""Errors of communication with etcd, one class for each decision that callers make."""


class EtcdError(Exception):
    """An answer of etcd that is not success. Messages contain no secrets."""


class EtcdUnavailableError(EtcdError):
    """No valid answer: refused, disconnected, timed out, no leader, compacted. Whether a write was done is unknown."""


class LeaseNotFoundError(EtcdError):
    """The lease has expired, was revoked, or was lost with the server's data."""


class EtcdLoginError(EtcdError):
    """etcd refused user and password, or the client certificate."""


class CertificateFileError(EtcdError):
    """A certificate or key file, or the file with the password, cannot be read."""
