"""File discovery: percent-encoded names, files that are no longer touched, and files that come and go."""

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from dynamo_model_discovery.workers.assembly import assemble
from dynamo_model_discovery.workers.sources.files import LIFETIME, FileSource

from tests.unit.model_discovery.worker_building import card, instance


class Deployment:
    """A directory, and a clock that does not advance on its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = 1_000_000.0
        self.news = 0
        self.source = FileSource(directory, self._changed, now=lambda: self.now)

    def _changed(self) -> None:
        self.news += 1

    def write(self, pair: tuple[str, bytes]) -> Path:
        _, kind, name = pair[0].split("/", 2)
        path = self.directory / "v1" / kind / quote(name, safe="").replace("-", "%2D").replace("_", "%5F")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pair[1])
        self.touch(path)
        return path

    def touch(self, path: Path) -> None:
        os.utime(path, (self.now, self.now))

    async def workers(self) -> list[str]:
        await self.source.poll()
        return sorted(worker.name for worker in assemble(self.source.records(), {}).workers.values())


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path / "kv")


async def test_a_missing_directory_counts_as_empty(deployment: Deployment):
    assert not deployment.source.ready
    assert await deployment.workers() == []
    assert deployment.source.ready
    assert deployment.news == 1


async def test_files_are_workers_while_they_are_touched(deployment: Deployment):
    first = deployment.write(instance(2**63 + 5, namespace="a-b", component="back_end"))
    deployment.write(instance(7))
    deployment.write(card(7))
    assert await deployment.workers() == ["a-b/back_end/8000000000000005", "dyn/backend/7"]
    deployment.now += LIFETIME - 1
    deployment.touch(first)
    assert len(await deployment.workers()) == 2
    deployment.now += 2
    assert await deployment.workers() == ["a-b/back_end/8000000000000005"]
    first.unlink()
    assert await deployment.workers() == []


async def test_an_unchanged_directory_reports_no_change(deployment: Deployment):
    path = deployment.write(instance(7))
    await deployment.workers()
    reported = deployment.news
    deployment.now += 1
    deployment.touch(path)
    await deployment.workers()
    assert deployment.news == reported
    path.write_bytes(b"{")
    deployment.touch(path)
    await deployment.workers()
    assert (deployment.news, deployment.source.unreadable) == (reported + 1, 1)


async def test_other_files_are_ignored(deployment: Deployment):
    directory = deployment.write(instance(7)).parent
    (directory / ".tmp_0123").write_bytes(b"half")
    (directory / "folder").mkdir()
    (directory / "link").symlink_to("/etc/hostname")
    assert await deployment.workers() == ["dyn/backend/7"]
    assert deployment.source.unreadable == 0


async def test_an_unreadable_directory_keeps_the_known_workers(deployment: Deployment):
    path = deployment.write(instance(7))
    await deployment.workers()
    path.parent.rename(deployment.directory / "away")
    path.parent.write_text("a file")
    assert await deployment.workers() == ["dyn/backend/7"]
    assert "Not a directory" in deployment.source.error
    path.parent.unlink()
    (deployment.directory / "away").rename(path.parent)
    assert await deployment.workers() == ["dyn/backend/7"]
    assert deployment.source.error == ""
