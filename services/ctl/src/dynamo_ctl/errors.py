"""The error messages of dynamoctl for users, and its exit codes for programs.

An error is one line: what is wrong, where, and what to do. Exit codes are part of the interface (docs/dynamoctl.md).
"""

import errno
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command."""

    OK = 0
    FAILED = 1
    """The request was refused, is invalid, or names something that does not exist."""
    USAGE = 2
    """The command line is wrong."""
    UNREACHABLE = 3
    """The cluster, NATS, etcd or the REST API cannot be reached or has no address, or a program cannot be obtained."""
    NOT_READY = 4
    """Graphs did not become successful in time."""
    INTERNAL = 70
    """A bug of dynamoctl; `--debug` shows where."""
    INTERRUPTED = 130
    """Ctrl-C before the work was done."""


class CtlError(Exception):
    """Ends the command with `code`. Every line of the message is printed as a separate error."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


_PLANNER = "the planner and its libraries", "planner"
#: Packages that an installation may lack: what is missing, and the extra of dynamo-ctl that installs it.
_EXTRAS = {
    "dynamo_planner": _PLANNER,
    "dynamo_profiler": _PLANNER,
    "matplotlib": _PLANNER,
    "plotly": _PLANNER,
    "dynamo_devcluster": ("the local servers", "devcluster"),
}


def explain(error: BaseException) -> tuple[ExitCode, str]:
    """Exit code and message for any exception of a command."""
    # Imported here: a command that succeeds does not need these, and --help must be quick.
    from dynamo_shared.bus import BusError
    from dynamo_shared.kube import ConfigError, Forbidden, KubeError, Unauthorized, Unavailable
    from dynamo_shared.leases.errors import EtcdUnavailableError
    from dynamo_shared.runtime.invalid_settings import InvalidSettings

    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    match error:
        case CtlError():
            return error.code, str(error)
        case InvalidSettings():
            return ExitCode.FAILED, str(error)
        case ConfigError() | BusError():
            return ExitCode.UNREACHABLE, str(error)
        case EtcdUnavailableError():
            return (
                ExitCode.UNREACHABLE,
                f"etcd does not answer: {error}; check that it is running, and the load of the machine",
            )
        case Unavailable():
            return (
                ExitCode.UNREACHABLE,
                f"the cluster does not answer: {error}; check that it is running, and --kubeconfig",
            )
        case Unauthorized() | Forbidden():
            return ExitCode.FAILED, f"the cluster refuses: {error}; log in again or request the permission"
        case KubeError():
            return ExitCode.FAILED, str(error)
        case OSError():
            return ExitCode.FAILED, _of_the_system(error)
        case ModuleNotFoundError(name=str(name)) if name.partition(".")[0] in _EXTRAS:
            missing, extra = _EXTRAS[name.partition(".")[0]]
            return (
                ExitCode.FAILED,
                f"this command needs {missing}, which are not installed: pip install dynamo-ctl[{extra}]",
            )
    text = " ".join(str(error).split())
    return ExitCode.INTERNAL, f"internal error: {type(error).__name__}: {text}; --debug shows where"


def _of_the_system(error: OSError) -> str:
    text = str(error).removeprefix(f"[Errno {error.errno}] ")
    if error.errno == errno.EADDRINUSE:
        return (
            f"{text}: stop the process that uses this port, or configure another port (docs/reference/configuration.md)"
        )
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else text
