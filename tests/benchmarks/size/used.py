"""Resources that services use: processor time, memory, writes, and the storage of NATS."""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dynamo_devcluster.probe import LocalHttp

from tests.stage.cluster import Stage
from tests.stage.service import Service

TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
_WRITING = {"POST", "PUT", "PATCH", "DELETE"}
#: Resources that are written even at rest.
_RENEWED = ("leases", "events")
#: Queries that use POST.
_ASKED = ("subjectaccessreviews", "selfsubjectaccessreviews", "tokenreviews")
_REQUESTS = re.compile(r"^dynamo_platform_kube_requests_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Used:
    """Processes of one name: processor seconds since their start, resident memory in MiB now and at most."""

    cpu: float
    mib: float
    highest: float


def used(stage: Stage) -> dict[str, Used]:
    """Resources of all processes, by name; replicas of a service together."""
    plane = stage.plane
    servers = [plane.api_server, plane.controller_manager, plane.scheduler, plane.kwok]
    processes = [(each.name, each) for each in servers if each is not None]
    processes += [("etcd of Kubernetes", plane.etcd), ("etcd", stage.etcd), ("NATS", stage.nats)]
    processes += [(each.name, each.process) for each in stage.services]
    used: dict[str, Used] = defaultdict(lambda: Used(0, 0, 0))
    for name, process in processes:
        if process.pid is not None:
            before = used[name]
            used[name] = Used(
                before.cpu + cpu_seconds(process.pid),
                before.mib + _resident_mib(process.pid),
                before.highest + _highest_mib(process.pid),
            )
    return dict(used)


def cpu_seconds(pid: int) -> float:
    """Processor seconds of a process since its start."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 2**20


def _highest_mib(pid: int) -> float:
    return _kib(Path(f"/proc/{pid}/status"), "VmHWM") / 1024


def available_mib() -> float:
    """Memory that the machine can still give without swapping."""
    return _kib(Path("/proc/meminfo"), "MemAvailable") / 1024


def _kib(file: Path, name: str) -> int:
    line = re.search(rf"^{name}:\s+(\d+) kB", file.read_text(), re.MULTILINE)
    assert line is not None, (file, name)
    return int(line[1])


def load() -> float:
    """Processes that run or wait for a processor, averaged over the last minute: the other load of the machine."""
    return os.getloadavg()[0]


def writes(services: Iterable[Service]) -> Counter[str]:
    """Requests that change objects, by service and resource, since the processes started, without Leases and Events."""
    return _requests(services, lambda resource: not resource.startswith((*_RENEWED, *_ASKED)))


def renewals(services: Iterable[Service]) -> Counter[str]:
    """Requests that write Leases and Events."""
    return _requests(services, lambda resource: resource.startswith(_RENEWED))


def _requests(services: Iterable[Service], counts: Callable[[str], bool]) -> Counter[str]:
    used: Counter[str] = Counter()
    for each in services:
        for line in _REQUESTS.finditer(each.metrics()):
            labels = dict(_LABEL.findall(line[1]))
            if labels["method"] in _WRITING and counts(labels["resource"]):
                used[f"{each.id}: {labels['method']} {labels['resource']}"] += int(float(line[2]))
    return used


async def nats_storage_mib(stage: Stage) -> float:
    """Bytes of all JetStream streams."""
    status, body = await LocalHttp(stage.nats.monitoring_port).request("GET", "/jsz")
    assert status == 200, body
    return float(json.loads(body)["storage"]) / 2**20
