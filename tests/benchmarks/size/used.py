"""What services use: processor time, memory, writes, and what NATS keeps."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from dynamo_ctl.localcluster.probe import LocalHttp

from tests.stage.cluster import Stage
from tests.stage.service import Service

TICKS = os.sysconf("SC_CLK_TCK")
_WRITING = {"POST", "PUT", "PATCH", "DELETE"}
#: Leases are renewed at rest, too; Events are reports.
_NO_WORK = ("leases", "events")
_REQUESTS = re.compile(r"^dynamo_platform_kube_requests_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def cpu_seconds(service: Service) -> float:
    """Of a process since its start."""
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def writes(services: Iterable[Service]) -> Counter[str]:
    """Requests that change objects, by service and resource, since the starts of the processes, without Leases and Events."""
    found: Counter[str] = Counter()
    for each in services:
        for line in _REQUESTS.finditer(each.metrics()):
            labels = dict(_LABEL.findall(line[1]))
            if labels["method"] in _WRITING and not labels["resource"].startswith(_NO_WORK):
                found[f"{each.id}: {labels['method']} {labels['resource']}"] += int(float(line[2]))
    return found


async def nats_storage_mib(stage: Stage) -> float:
    """Bytes of all JetStream streams."""
    status, body = await LocalHttp(stage.nats.monitoring_port).request("GET", "/jsz")
    assert status == 200, body
    return float(json.loads(body)["storage"]) / 2**20
