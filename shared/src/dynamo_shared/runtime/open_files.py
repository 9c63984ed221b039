"""How many files and connections a process may have open at once: as many as the system lets it."""

import resource

import structlog

#: Where the system lets a process have more, or names no limit.
MOST = 1 << 20

log = structlog.get_logger("dynamo.runtime")


def allow_most() -> None:
    """Raise the soft limit to the hard one, as programs in Go do.

    The soft one is 1,024 for containers of containerd 2 and for services of systemd: for programs that use select(). The REST
    API alone may have 2,000 streams; at the limit a process takes no probe, and reaches no API server.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ValueError, OSError) as error:
        log.warning("the limit of open files stays", files=soft, error=str(error))
