"""Errors of the local cluster: one class for each decision a caller can take."""


class LocalClusterError(Exception):
    """Anything that keeps a local cluster from working. The message is one line: what is wrong and what to do."""


class ProgramUnavailableError(LocalClusterError):
    """No source could provide a program. Callers without it may skip, or suggest compose.yaml."""


class ChecksumMismatchError(LocalClusterError):
    """A downloaded file is not the published one. Nothing was kept; never fall through to another source."""


class ProcessDiedError(LocalClusterError):
    """A server ended before it was ready. The message quotes the last lines of its log."""


class NotReadyError(LocalClusterError):
    """A server runs but did not become ready before its deadline."""
