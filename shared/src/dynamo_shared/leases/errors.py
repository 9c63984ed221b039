"""What can go wrong between us and etcd, as the decisions that callers take on it."""


class EtcdError(Exception):
    """An answer of etcd that is not success. Messages hold no secrets."""


class EtcdUnavailableError(EtcdError):
    """No answer, or none that counts: refused, cut off, timed out, no leader. Whether a write was done is unknown."""


class LeaseNotFoundError(EtcdError):
    """The lease has expired, was revoked, or went with the server's data."""


class EtcdLoginError(EtcdError):
    """User and password, or the client certificate, were refused."""


class CompactedError(EtcdError):
    """A watch asked for revisions that are gone; read again."""


class CertificateFileError(EtcdError):
    """A certificate or key file, or the file with the password, cannot be read."""
