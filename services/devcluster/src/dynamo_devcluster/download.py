"""Downloads official releases, and verifies their SHA-256. Without a network this source fails after PROBE_SECONDS."""

import asyncio
import hashlib
import http.client
import json
import platform
import shutil
import tarfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .cache import ProgramCache
from .catalog import Program
from .errors import ChecksumMismatchError
from .progress import Progress, step
from .sources import NotAvailableError

PROBE_SECONDS = 3.0
_READ_SECONDS = 60.0
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Release:
    """One published file. `member` is the path of the program in it if it is an archive.

    `checksum_url` returns one digest, a `SHA256SUMS` listing, or GitHub's JSON description of a release.
    """

    url: str
    checksum_url: str
    member: str | None = None

    @property
    def file_name(self) -> str:
        """Last part of the URL."""
        return self.url.rsplit("/", 1)[-1]


def release_of(program: Program, system: str, machine: str) -> Release | None:
    """The release of the program's pinned version, for `system` (linux, darwin) and `machine` (amd64, arm64)."""
    name, version = program.name, program.version
    if name.startswith("kube"):
        # Upstream publishes servers only for Linux, and kubectl for every system.
        if system != "linux" and name != "kubectl":
            return None
        url = f"https://dl.k8s.io/release/v{version}/bin/{system}/{machine}/{name}"
        return Release(url, f"{url}.sha256")
    if name == "etcd":
        base = f"https://github.com/etcd-io/etcd/releases/download/v{version}"
        stem = f"etcd-v{version}-{system}-{machine}"
        # Only the Linux archives are tarballs.
        return Release(f"{base}/{stem}.tar.gz", f"{base}/SHA256SUMS", f"{stem}/etcd") if system == "linux" else None
    if name == "nats-server":
        base = f"https://github.com/nats-io/nats-server/releases/download/v{version}"
        stem = f"nats-server-v{version}-{system}-{machine}"
        return Release(f"{base}/{stem}.tar.gz", f"{base}/SHA256SUMS", f"{stem}/nats-server")
    if name == "prometheus":
        base = f"https://github.com/prometheus/prometheus/releases/download/v{version}"
        stem = f"prometheus-{version}.{system}-{machine}"
        return Release(f"{base}/{stem}.tar.gz", f"{base}/sha256sums.txt", f"{stem}/prometheus")
    if name == "helm":
        url = f"https://get.helm.sh/helm-v{version}-{system}-{machine}.tar.gz"
        return Release(url, f"{url}.sha256sum", f"{system}-{machine}/helm")
    if name == "kwok":
        repository = "kubernetes-sigs/kwok"
        return Release(
            f"https://github.com/{repository}/releases/download/v{version}/kwok-{system}-{machine}",
            f"https://api.github.com/repos/{repository}/releases/tags/v{version}",
        )
    return None


def checksum_in(answer: str, file_name: str) -> str | None:
    """The SHA-256 (hex) of `file_name` from any of the three forms of `Release.checksum_url`."""
    if answer.lstrip().startswith("{"):
        for asset in json.loads(answer).get("assets", []):
            algorithm, _, digest = str(asset.get("digest") or "").partition(":")
            if asset.get("name") == file_name and algorithm == "sha256":
                return digest
        return None
    lines = [line.split() for line in answer.splitlines() if line.strip()]
    if len(lines) == 1 and len(lines[0]) == 1:
        return lines[0][0].lower()
    return next((words[0].lower() for words in lines if len(words) == 2 and words[1].lstrip("*") == file_name), None)


def this_platform() -> tuple[str, str]:
    """(system, machine) of this machine, as `release_of` expects them."""
    machine = platform.machine().lower()
    return platform.system().lower(), {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


class DownloadSource:
    """Downloads a release into the cache. Each host is probed once; a host that does not answer is not used again."""

    def __init__(self, cache: ProgramCache, locate: Callable[[Program, str, str], Release | None] = release_of) -> None:
        self._cache = cache
        self._locate = locate
        self._reachable: dict[str, bool] = {}

    async def find(self, program: Program, progress: Progress) -> Path:
        """The downloaded program. Raises ChecksumMismatchError if the file is not the published one."""
        release = self._locate(program, *this_platform())
        if release is None:
            raise NotAvailableError("no release for this operating system and architecture")
        for url in (release.url, release.checksum_url):
            await self._probe(url)
        loop = asyncio.get_running_loop()
        name = f"downloading {program.name} {program.version}"

        cancelled = threading.Event()

        def report(done: int, total: int) -> None:
            if cancelled.is_set():
                # Raised inside the thread, because a thread cannot be cancelled, and the process would wait for its end.
                raise NotAvailableError("cancelled")
            loop.call_soon_threadsafe(progress.advanced, name, done >> 20, total >> 20, "MiB")

        try:
            with step(progress, name):
                return await asyncio.to_thread(self._download, program, release, report)
        except (OSError, ValueError, http.client.HTTPException) as error:
            host = urllib.parse.urlsplit(release.url).netloc
            raise NotAvailableError(f"the download from {host} failed: {error}") from error
        finally:
            cancelled.set()

    async def _probe(self, url: str) -> None:
        host = urllib.parse.urlsplit(url).netloc
        if host not in self._reachable:
            self._reachable[host] = await asyncio.to_thread(_answers, url)
        if not self._reachable[host]:
            raise NotAvailableError(f"{host or 'the host'} is not reachable")

    def _download(self, program: Program, release: Release, report: Callable[[int, int], None]) -> Path:
        with _open(release.checksum_url) as answer:
            published = checksum_in(answer.read().decode(), release.file_name)
        if published is None:
            raise NotAvailableError(f"no checksum of {release.file_name} is published")
        with self._cache.staging(program) as folder:
            fetched = folder / "fetched"
            digest = hashlib.sha256()
            with _open(release.url) as answer, fetched.open("wb") as out:
                total, done = int(answer.headers.get("Content-Length") or 0), 0
                while chunk := answer.read(_CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
                    done += len(chunk)
                    report(done, total)
            if done < total:
                # The file is incomplete, not different: another source may be used.
                raise ConnectionError(f"the download ended after {done} of {total} bytes")
            if digest.hexdigest() != published:
                raise ChecksumMismatchError(
                    f"{release.url} has SHA-256 {digest.hexdigest()}, not the published {published}; "
                    "the download was discarded: try again, or install the program yourself and put it on PATH"
                )
            return self._cache.install(program, _unpacked(fetched, release.member))


def _unpacked(fetched: Path, member: str | None) -> Path:
    if member is None:
        return fetched
    target = fetched.with_name("unpacked")
    with tarfile.open(fetched) as archive:
        try:
            inside = archive.extractfile(member)
        except KeyError:
            inside = None
        if inside is None:
            raise NotAvailableError(f"the archive has no {member}")
        with inside, target.open("wb") as out:
            shutil.copyfileobj(inside, out)
    return target


def _open(url: str, timeout: float = _READ_SECONDS, method: str = "GET") -> http.client.HTTPResponse:
    request = urllib.request.Request(url, method=method, headers={"User-Agent": "dynamo-platform"})  # noqa: S310
    answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=timeout)  # noqa: S310 - from our table
    return answer


def _answers(url: str) -> bool:
    try:
        _open(url, PROBE_SECONDS, "HEAD").close()
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False
    return True
