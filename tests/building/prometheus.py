"""A Prometheus on 127.0.0.1 that scrapes the given targets, for tests of planning."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dynamo_devcluster.ports import LOOPBACK, PortFile
from dynamo_devcluster.probe import LocalHttp
from dynamo_devcluster.servers import LocalServer


@dataclass(frozen=True)
class ScrapeJob:
    """Targets (`host:port`) whose `/metrics` are scraped, and labels for their series."""

    name: str
    targets: Sequence[str]
    labels: dict[str, str] = field(default_factory=dict)


class PrometheusServer(LocalServer):
    """One Prometheus; `interval` is seconds between scrapes. Data survive restarts."""

    def __init__(self, program: Path, directory: Path, jobs: Sequence[ScrapeJob], *, interval: float = 1.0) -> None:
        self.data = directory / "data"
        self.config = directory / "prometheus.yml"
        self.interval = interval
        self.jobs = list(jobs)
        ports = PortFile(directory / "ports.json")
        self.port = ports.port("web")
        self.url = f"http://{LOOPBACK}:{self.port}"
        http = LocalHttp(self.port)
        super().__init__(
            "prometheus",
            [
                program, f"--config.file={self.config}", f"--storage.tsdb.path={self.data}", "--log.level=warn",
                f"--web.listen-address={LOOPBACK}:{self.port}",
            ],
            directory / "prometheus.log",
            lambda: http.ok("/-/ready"),
        )  # fmt: skip

    async def start(self) -> None:
        """Write the configuration, start, and wait until it serves."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        # YAML is a superset of JSON.
        self.config.write_text(json.dumps(self._configuration(), indent=2))
        await super().start()

    def _configuration(self) -> dict[str, object]:
        every = f"{round(self.interval * 1000)}ms"
        return {
            "global": {"scrape_interval": every, "scrape_timeout": every},
            "scrape_configs": [
                {"job_name": job.name, "static_configs": [{"targets": list(job.targets), "labels": job.labels}]}
                for job in self.jobs
            ],
        }
