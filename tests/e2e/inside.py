"""`python -m tests.e2e.inside FOLDER COMMAND...`: the first process of a node's namespaces.

Gives the node its addresses and its own places in the file system, runs the command, and collects the processes that
others leave behind, as the first process of a namespace has to.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from dynamo_ctl.localcluster.options import ControlPlaneOptions

from .configuration import addresses

#: Places that containerd, runc, the network plugins and the kubelet name themselves.
OWN_PLACES = ("/run", "/var/log", "/var/lib/cni")
#: What a kubelet sets for the whole machine; here it sets files that look so.
KERNEL_SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")


def main(command: list[str]) -> int:
    """Returns the command's exit code; 128 and the signal's number where one ended it."""
    _prepare()
    child = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Not `child.send_signal`, which may collect the child that the loop below waits for.
        signal.signal(number, lambda which, _: os.kill(child.pid, which))
    # The terminal tells the command itself.
    signal.signal(signal.SIGINT, lambda *_: None)
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            child.returncode = code
            return code if code >= 0 else 128 - code


def _prepare() -> None:
    for place in OWN_PLACES:
        Path(place).mkdir(parents=True, exist_ok=True)
        _do("mount", "-t", "tmpfs", "-o", "mode=755", "dynamo-node", place)
    for name in KERNEL_SETTINGS:
        setting, stand_in = Path("/proc/sys", name), Path("/run", name.replace("/", "."))
        stand_in.write_text(setting.read_text())
        _do("mount", "--bind", str(stand_in), str(setting))
    for each in addresses(ControlPlaneOptions().service_cidr):
        _do(*each)


def _do(*command: str) -> None:
    subprocess.run(command, check=True, timeout=20)


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
