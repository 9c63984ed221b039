"""Limits of the whole process: open files, and how often garbage is collected."""

import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

#: The limit of open files if the system allows more, or has no limit.
_MOST_FILES = 1 << 20
#: New objects that trigger a collection of the first generation. Python's default of 700 costs a twentieth of a
#: service's processor time, in pauses of up to a quarter of a second (`make bench-reconcile`, 100 graphs at once).
_COLLECT_AFTER = 10_000

log = structlog.get_logger("dynamo.runtime")


def allow_open_files() -> None:
    """Raise the soft limit of open files to the hard limit, like programs in Go.

    The soft limit is 1,024 for containers of containerd 2 and for systemd services, because of programs that use
    select(). The REST API alone may have 2,000 streams; at the limit a process accepts no probe and cannot connect to
    the API server.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ValueError, OSError) as error:
        log.warning("cannot raise the limit of open files", files=soft, error=str(error))


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely in the whole process while the block runs, and never traverse what is already loaded."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
