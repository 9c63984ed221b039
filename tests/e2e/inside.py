"""`python -m tests.e2e.inside FOLDER COMMAND...`: the first process of a node's namespaces.

Gives the node its addresses and mounts, runs the command, and reaps orphaned processes, as the first process of a
namespace must.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from .configuration import Layout, addresses

#: Fixed paths of containerd, runc, the network plugins and the kubelet.
OWN_PLACES = ("/run", "/var/log", "/var/lib/cni")
#: Kernel settings that a kubelet changes for the whole machine; here it changes files of the same form.
KERNEL_SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")


#: With this much free memory, images are unpacked in memory: a disk takes half a minute to write and to remove them.
PLENTY_OF_MEMORY = 10 << 30
MEMORY_FOR_IMAGES = 6 << 30


def main(folder: Path, command: list[str]) -> int:
    """Returns the command's exit code, or 128 plus the signal's number if a signal ended it."""
    _prepare(folder)
    child = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Not `child.send_signal`, which may reap the child that the loop below waits for.
        signal.signal(number, lambda which, _: os.kill(child.pid, which))
    # The terminal signals the command itself.
    signal.signal(signal.SIGINT, lambda *_: None)
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            child.returncode = code
            return code if code >= 0 else 128 - code


def _prepare(folder: Path) -> None:
    for place in OWN_PLACES:
        _in_memory(Path(place), "mode=755")
    if _available_memory() >= PLENTY_OF_MEMORY:
        _in_memory(Layout(folder).images, f"mode=700,size={MEMORY_FOR_IMAGES}")
    for name in KERNEL_SETTINGS:
        setting, stand_in = Path("/proc/sys", name), Path("/run", name.replace("/", "."))
        stand_in.write_text(setting.read_text())
        _do("mount", "--bind", str(stand_in), str(setting))
    for each in addresses():
        _do(*each)


def _in_memory(place: Path, options: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    _do("mount", "-t", "tmpfs", "-o", options, "dynamo-node", str(place))


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.removesuffix("kB")) << 10
    return 0


def _do(*command: str) -> None:
    subprocess.run(command, check=True, timeout=20)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
