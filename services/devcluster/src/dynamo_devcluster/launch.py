"""`python launch.py PARENT COMMAND...`: become COMMAND, and die with PARENT (Linux).

It is a separate program, because the request must be made in the child between fork and exec. Python code that runs
there (`preexec_fn`) runs in a copy of a process with threads: with gRPC's threads, such children crash sometimes.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Never returns; OSError if the command cannot be run."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent died before the request was made.
        os._exit(1)
    os.execv(command[0], command)  # noqa: S606 - the command of our own caller


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
