"""Runs a command to its end, and then stays: podman restarts a container only while all that it depends on runs.

Docker and podman read the file /tmp/done as the sign that the command has succeeded.
"""

import pathlib
import signal
import subprocess
import sys

try:
    subprocess.run(sys.argv[1:], check=True)
except subprocess.CalledProcessError as error:
    sys.exit(error.returncode)
pathlib.Path("/tmp/done").touch()
ends = {signal.SIGTERM, signal.SIGINT}
# The first process of a container does not even see a signal that it neither handles nor blocks.
signal.pthread_sigmask(signal.SIG_BLOCK, ends)
signal.sigwait(ends)
