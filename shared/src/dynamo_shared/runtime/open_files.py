"""Sets how many files and connections a process may have open: as many as the system allows."""

import resource

import structlog

#: The limit if the system allows more, or has no limit.
MOST = 1 << 20

log = structlog.get_logger("dynamo.runtime")


def allow_most() -> None:
    """Raise the soft limit to the hard limit, like programs in Go.

    The soft limit is 1,024 for containers of containerd 2 and for systemd services, because of programs that use
    select(). The REST API alone may have 2,000 streams; at the limit a process accepts no probe and cannot connect to
    the API server.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ValueError, OSError) as error:
        log.warning("cannot raise the limit of open files", files=soft, error=str(error))
