"""Errors of the local cluster: one class for each decision of a caller."""


class LocalClusterError(Exception):
    """Base class of all errors of a local cluster. The message is one line: what is wrong and what to do."""


class ProgramUnavailableError(LocalClusterError):
    """No source could provide a program. Callers may skip it, or suggest compose.yaml."""


class ChecksumMismatchError(LocalClusterError):
    """A downloaded file is not the published one. It was deleted; never continue with another source."""


class ProcessDiedError(LocalClusterError):
    """A server ended before it was ready. The message quotes the last lines of its log."""


class NotReadyError(LocalClusterError):
    """A server runs but did not become ready before its deadline."""
