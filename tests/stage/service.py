"""A service of the platform as a separate process: its configuration, its endpoints, its resource use."""

import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamo_devcluster import ManagedProcess, free_port
from dynamo_devcluster.probe import LocalHttp

from tests.building import services

READY_WITHIN = 90.0
_RESTARTS = re.compile(r"^dynamo_platform_service_restarts_total\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)


@dataclass(slots=True)
class Service:
    """One replica of one service."""

    name: str
    replica: str
    health_port: int
    metrics_port: int
    webhook_port: int
    process: ManagedProcess

    @property
    def http(self) -> LocalHttp:
        """Its /healthz and /readyz."""
        return LocalHttp(self.health_port)

    @property
    def id(self) -> str:
        """Name and replica."""
        return f"{self.name}-{self.replica}"

    def resident_mib(self) -> float:
        """Memory that is resident now."""
        return self._memory("VmRSS")

    def peak_mib(self) -> float:
        """Highest resident memory since the start, or since `forget_peak`."""
        return self._memory("VmHWM")

    def forget_peak(self) -> None:
        """Measure the peak from now on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def restarts(self) -> float:
        """Restarts of the service within its process."""
        return sum(float(value) for value in _RESTARTS.findall(self.metrics()))

    def metrics(self) -> str:
        """The text of /metrics; empty if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as answer:
                text: str = answer.read().decode()
                return text
        except OSError:
            return ""

    def _memory(self, field: str) -> float:
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0.0
        match = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
        return int(match[1]) / 1024 if match else 0.0


def service(
    name: str,
    replica: str,
    folder: Path,
    kubeconfig: Path,
    platform: dict[str, Any],
    *,
    sections: Mapping[str, Any] | None = None,
) -> Service:
    """A service that is not started yet; `platform` is that section of the configuration, without Kubernetes.

    `sections` are other sections.
    """
    health, metrics, webhook = free_port(), free_port(), free_port()
    if name == "admission" and not platform["admission"].get("url"):
        platform = {**platform, "admission": {**platform["admission"], "url": f"https://127.0.0.1:{webhook}"}}
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**platform, "replicaId": replica, "kubernetes": {"kubeconfig": str(kubeconfig)}}
    others = {"rbac": {"plannerClusterRoleName": "dynamo-planner"}, **(sections or {})}
    configured = services.configuration(health, metrics, webhook, settings, **others)
    own, config = f"{name}-{replica}", folder / f"{name}-{replica}.yaml"
    process = services.service_process(
        own, (name,), config, configured, "/healthz", ready_within=READY_WITHIN, stop_within=40.0
    )
    return Service(name, replica, health, metrics, webhook, process)
