"""A registry and a buildkitd as processes of a test."""

import base64
import json
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from dynamo_devcluster import free_port
from dynamo_devcluster.process import ManagedProcess

USER, PASSWORD = "robot", "word"
#: bcrypt of the password, as htpasswd writes it.
HTPASSWD = f"{USER}:$2b$05$3utexPQKvtYpRiZdI/xD8OVYMKTMlwQSmrT2pvzSShWcD1cvZjly.\n"
MANIFESTS = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry that requires the login above."""

    host: str

    def get(self, path: str) -> tuple[bytes, Mapping[str, str]]:
        """Body and headers of an answer. HTTPError if it is not a success."""
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Accept": MANIFESTS}
        with urllib.request.urlopen(
            urllib.request.Request(f"http://{self.host}{path}", headers=headers), timeout=10
        ) as answer:
            return answer.read(), dict(answer.headers)

    def manifest(self, repository: str, reference: str) -> tuple[dict[str, Any], str]:
        """A manifest and its digest."""
        body, headers = self.get(f"/v2/{repository}/manifests/{reference}")
        return json.loads(body), headers["Docker-Content-Digest"]


@asynccontextmanager
async def registry(program: Path, folder: Path) -> AsyncIterator[Registry]:
    """A registry that runs during the block."""
    folder.mkdir()  # noqa: ASYNC240 - before anything runs
    host = f"127.0.0.1:{free_port()}"
    (folder / "htpasswd").write_text(HTPASSWD)
    storage = {"filesystem": {"rootdirectory": str(folder / "data")}}
    auth = {"htpasswd": {"realm": "tests", "path": str(folder / "htpasswd")}}
    configuration = {"version": 0.1, "log": {"level": "warn"}, "storage": storage, "http": {"addr": host}, "auth": auth}
    (folder / "config.yml").write_text(yaml.safe_dump(configuration))
    running = Registry(host)

    async def answers() -> bool:
        try:
            running.get("/v2/")
        except OSError:
            return False
        return True

    process = ManagedProcess("registry", [program, "serve", folder / "config.yml"], folder / "log", answers)
    await process.start()
    try:
        yield running
    finally:
        await process.stop()


@asynccontextmanager
async def buildkitd(program: Path, folder: Path, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """A buildkitd that runs during the block; its address. Needs root and runc."""
    folder.mkdir()  # noqa: ASYNC240 - before anything runs
    address = f"tcp://{host}:{free_port()}"
    command: list[str | Path] = [
        program,
        f"--addr={address}",
        f"--root={folder / 'root'}",
        "--containerd-worker=false",
        "--oci-worker-snapshotter=native",
        "--oci-worker-net=host",
    ]
    log = folder / "log"

    async def answers() -> bool:
        return "running server on" in log.read_text()

    process = ManagedProcess("buildkitd", command, log, answers)
    await process.start()
    try:
        yield address
    finally:
        await process.stop()
