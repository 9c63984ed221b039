"""`python launch.py PARENT COMMAND...` executes COMMAND, which the kernel kills when process PARENT ends (Linux).

It is a separate program, because the child must call prctl between fork and exec. Python's `preexec_fn` would run in a
copy of a process with threads: with gRPC's threads, such children sometimes crash.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Replaces this process. Raises OSError if the command cannot be executed."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent ended before the call of prctl.
        os._exit(1)
    os.execv(command[0], command)  # noqa: S606 - the command of our own caller


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
