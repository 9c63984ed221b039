"""Fetches the archive of a tag: the service determines its digest, and the build's pod downloads and unpacks it.

The build's pod runs only this file (`python3 -c`), so it imports only the standard library. A source is a store that
answers `GET /api/v1/dynamo_nims/NAME/versions/VERSION/download` (seed 003; an older store has
`/api/v1/bento_repositories/NAME/bentos/VERSION/download`), or a registry, `oci://HOST/PATH` (`oci+http://` without
TLS), where the archive is the only layer of the artifact `HOST/PATH/NAME:VERSION`.
"""

import base64
import errno
import hashlib
import http.client
import ipaddress
import json
import os
import re
import shutil
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROUTES = (
    "/api/v1/dynamo_nims/{name}/versions/{version}/download",
    "/api/v1/bento_repositories/{name}/bentos/{version}/download",
)
MANIFESTS = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
#: Paths of the Dockerfile in an archive: BentoML's path, or the root.
DOCKERFILES = ("env/docker/Dockerfile", "Dockerfile")
#: Time limit of one operation of a connection. Seconds.
IO_TIMEOUT = 30.0
CHUNK = 1 << 16
#: Number of download attempts of a build's pod, and seconds between them.
TRIES, PAUSE = 5, 30.0
#: Size limit of a manifest or a token, which have a few hundred bytes.
MAX_DOCUMENT = 1 << 20
MAX_FILES = 200_000
#: Size limit of an unpacked archive, as a multiple of the archive's own limit.
UNPACKED = 4
WORKSPACE = "/workspace"
TERMINATION_LOG = "/dev/termination-log"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class FetchError(Exception):
    """The archive is not available. `temporary`: another attempt may succeed without any change."""

    def __init__(self, reason: str, message: str, *, temporary: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.temporary = temporary


@dataclass(frozen=True)
class ArchiveSource:
    """The location of the archive of a tag."""

    endpoint: str
    name: str
    version: str
    username: str = ""
    password: str = ""

    @property
    def is_registry(self) -> bool:
        """Whether the archive is an artifact of a registry."""
        return self.endpoint.startswith(("oci://", "oci+http://"))

    @property
    def tag(self) -> str:
        """Name and version."""
        return f"{self.name}:{self.version}"


@dataclass(frozen=True)
class Archive:
    """The content of an archive: its digest (`sha256:...`), and its size in bytes."""

    digest: str
    size: int


def _never() -> bool:
    return False


def find(source: ArchiveSource, limit: int, within: float, stopped: Callable[[], bool] = _never) -> Archive:
    """Digest and size of the archive. A registry reports both; the archive of a store is read, at most `limit` bytes.

    `within`: time limit in seconds. `stopped`: whether no one waits for the result any more. FetchError if the archive
    is not available.
    """
    if source.is_registry:
        digest, size = _layer(source)
        _check_size(source, size, limit)
        return Archive(digest, size)
    with _content(source, "") as stream:
        return _copy(source, stream, None, limit, within, stopped=stopped)


def download(source: ArchiveSource, digest: str, limit: int, file: Path, within: float) -> None:
    """Write the archive with this digest to a file. FetchError if the tag now names another archive."""
    with _content(source, digest) as stream, _workspace(), file.open("wb") as target:
        archive = _copy(source, stream, target, limit, within)
    if archive.digest != digest:
        raise FetchError(
            "ArchiveChanged",
            f"the archive of {source.tag} changed from {digest} to {archive.digest}: create the request again to build the "
            "new archive",
        )


def unpack(file: Path, context: Path, dockerfile: Path, limit: int) -> None:
    """Unpack an archive into `context`, and copy its Dockerfile into the folder `dockerfile`. FetchError if it has
    none.
    """
    context.mkdir(parents=True, exist_ok=True)
    left, files = limit * UNPACKED, 0
    try:
        with _workspace(), tarfile.open(file, "r:*") as archive:
            while member := archive.next():
                # tarfile keeps all members, with headers of any length, and the pod would run out of memory before
                # MAX_FILES.
                archive.members.clear()  # type: ignore[attr-defined]
                if member.size < 0:
                    raise ValueError(f"{member.name!r} has {member.size} bytes")
                left, files = left - member.size, files + 1
                if left < 0 or files > MAX_FILES:
                    raise FetchError(
                        "ArchiveTooLarge",
                        f"the archive unpacks to more than {limit * UNPACKED} bytes or {MAX_FILES} files: make it smaller, or "
                        "raise platform.imageBuilder.maxArchiveSize",
                    )
                archive.extract(member, context, filter="data")
    except FetchError:
        raise
    except Exception as error:
        # The archive's author can cause many errors: names, times and each compression format have their own
        # exceptions.
        raise FetchError("InvalidArchive", f"the archive is not a tar archive that can be unpacked: {error}") from error
    dockerfile_path = next((context / each for each in DOCKERFILES if _is_within(context / each, context)), None)
    if dockerfile_path is None:
        raise FetchError("NoDockerfile", f"the archive has neither {' nor '.join(DOCKERFILES)}: add one of them")
    dockerfile.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(dockerfile_path, dockerfile / "Dockerfile")


def _is_within(file: Path, folder: Path) -> bool:
    """Whether the file exists inside the folder: with older Python, links of an archive can lead out of it.

    Otherwise the author could read the variables of this process, with the store's password, in the build's log
    (CVE-2025-4517).
    """
    try:
        return file.is_file() and file.resolve(strict=True).is_relative_to(folder.resolve())
    except OSError:
        return False


@contextmanager
def _workspace() -> Iterator[None]:
    """Reports a full disk as a separate error, not as an error of the store or of the archive. FetchError."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        message = (
            f"the disk of the build's pod has no space for the archive ({error.strerror}): free space on the pod's node"
        )
        raise FetchError("WorkspaceFull", message) from error


def credentials(server: str, username: str, password: str) -> str:
    """A Docker configuration with the credentials of one registry; `server` may contain a path."""
    host = server.partition("/")[0]
    host = "https://index.docker.io/v1/" if host in ("docker.io", "index.docker.io") else host
    return json.dumps({"auths": {host: {"auth": base64.b64encode(f"{username}:{password}".encode()).decode()}}})


def main(environ: Mapping[str, str]) -> int:
    """The build's pod runs this before BuildKit. After a failure the exit code is 1, and the termination message says
    why.
    """
    workspace = Path(environ.get("WORKSPACE", WORKSPACE))
    limit = int(environ["ARCHIVE_LIMIT"])
    source = ArchiveSource(
        environ["ARCHIVE_ENDPOINT"],
        environ["ARCHIVE_NAME"],
        environ["ARCHIVE_VERSION"],
        environ.get("ARCHIVE_USERNAME", ""),
        environ.get("ARCHIVE_PASSWORD", ""),
    )
    file = workspace / "archive"
    try:
        _download_again(source, environ["ARCHIVE_DIGEST"], limit, file, float(environ["ARCHIVE_TIMEOUT"]))
        unpack(file, workspace / "context", workspace / "dockerfile", limit)
    except FetchError as error:
        Path(environ.get("TERMINATION_LOG", TERMINATION_LOG)).write_text(f"{error.reason}: {error.message}")
        sys.stderr.write(f"{error.reason}: {error.message}\n")
        return 1
    file.unlink()
    if environ.get("REGISTRY_USERNAME"):
        folder = workspace / "docker"
        folder.mkdir(exist_ok=True)
        text = credentials(environ["REGISTRY_SERVER"], environ["REGISTRY_USERNAME"], environ["REGISTRY_PASSWORD"])
        (folder / "config.json").write_text(text)
    return 0


def _download_again(source: ArchiveSource, digest: str, limit: int, file: Path, within: float) -> None:
    """Like `download`, with retries of temporary errors: a failed Job does not run again."""
    for _ in range(TRIES - 1):
        try:
            return download(source, digest, limit, file, within)
        except FetchError as error:
            if not error.temporary:
                raise
            sys.stderr.write(f"{error.reason}: {error.message}; retrying in {PAUSE:.0f} s\n")
        time.sleep(PAUSE)
    return download(source, digest, limit, file, within)


@contextmanager
def _content(source: ArchiveSource, digest: str) -> Iterator[http.client.HTTPResponse]:
    """The bytes of the archive, to be read once."""
    if source.is_registry:
        digest = digest or _layer(source)[0]
        with _open(source, f"{_repository(source)}/blobs/{digest}") as stream:
            yield stream
        return
    quoted = {key: urllib.parse.quote(getattr(source, key), safe="") for key in ("name", "version")}
    *first, last = (source.endpoint.rstrip("/") + route.format(**quoted) for route in ROUTES)
    for url in first:
        try:
            with _open(source, url) as stream:
                yield stream
            return
        except FetchError as error:
            if error.reason != "ArchiveNotFound":
                raise
    with _open(source, last) as stream:
        yield stream


def _repository(source: ArchiveSource) -> str:
    scheme, _, rest = source.endpoint.partition("://")
    host, _, path = rest.strip("/").partition("/")
    repository = "/".join(filter(None, (path, source.name)))
    return f"{'http' if scheme == 'oci+http' else 'https'}://{host}/v2/{repository}"


def _layer(source: ArchiveSource) -> tuple[str, int]:
    """Digest and size of the only layer of the artifact."""
    with _open(source, f"{_repository(source)}/manifests/{source.version}", MANIFESTS) as stream:
        manifest = _document(stream)
    try:
        layers = [(str(each["digest"]), int(each["size"])) for each in manifest["layers"]]
    except (ValueError, KeyError, TypeError):
        layers = []
    if len(layers) != 1 or not _DIGEST.fullmatch(layers[0][0]):
        raise FetchError(
            "InvalidArtifact",
            f"the artifact {source.tag} does not have exactly one layer with a sha256 digest: push the archive as its only "
            "layer, for example with `oras push`",
        )
    return layers[0]


@contextmanager
def _open(source: ArchiveSource, url: str, accept: str = "*/*") -> Iterator[http.client.HTTPResponse]:
    """A GET of `url`, with a token if the registry requires one."""
    basic = base64.b64encode(f"{source.username}:{source.password}".encode()).decode() if source.username else ""
    authorization = f"Basic {basic}" if basic else ""
    try:
        try:
            response = _get(url, authorization, accept)
        except urllib.error.HTTPError as error:
            challenge = error.headers.get("WWW-Authenticate", "")
            # The target of a redirect never gets the credentials.
            asks = error.code == 401 and challenge.lower().startswith("bearer ") and _host(error.url) == _host(url)
            if not asks:
                raise
            error.close()
            schemes = ("https://",) if url.startswith("https://") else ("https://", "http://")
            response = _get(url, f"Bearer {_token(challenge, authorization, schemes)}", accept)
        with response:
            yield response
    except urllib.error.HTTPError as error:
        error.close()
        raise _refusal(source, url, error.code) from error
    except ValueError as error:
        message = (
            f"{_host(url)} does not answer as a registry for {source.tag}: {error}; check "
            "platform.imageBuilder.store.endpoint"
        )
        raise FetchError("StoreFailed", message, temporary=True) from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        message = (
            f"{_host(url)} cannot be reached for {source.tag}: {reason}; check platform.imageBuilder.store.endpoint"
        )
        raise FetchError("StoreUnreachable", message, temporary=True) from error


def _get(url: str, authorization: str, accept: str) -> Any:
    request = urllib.request.Request(url, headers={"Accept": accept, "User-Agent": "dynamo-image-builder"})  # noqa: S310
    if authorization:
        # Not sent to the host of a redirect.
        request.add_unredirected_header("Authorization", authorization)
    return urllib.request.build_opener(_Proxies).open(request, timeout=IO_TIMEOUT)


class _Proxies(urllib.request.ProxyHandler):
    """The proxies of the environment. Python supports names and suffixes in NO_PROXY; this class also supports ranges,
    like BuildKit.
    """

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> Any:  # noqa: A002 - its name there
        host = urllib.parse.urlsplit(f"//{req.host}").hostname or ""
        rules = (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").split(",")
        return None if any(_covers(each.strip(), host) for each in rules) else super().proxy_open(req, proxy, type)


def _covers(rule: str, host: str) -> bool:
    """Whether a rule is a range or an address that contains the host's address."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(rule.strip("[]"), strict=False)
    except ValueError:
        return False


def _token(challenge: str, authorization: str, schemes: tuple[str, ...]) -> str:
    """A token for the registry's challenge, requested with the credentials from a realm with one of these schemes."""
    parts = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    realm = parts.pop("realm", "")
    if not realm.startswith(schemes):
        raise ValueError(
            f"the registry does not name a realm for tokens with {' or '.join(schemes)}: {challenge[:200]}"
        )
    query = urllib.parse.urlencode({key: parts[key] for key in ("service", "scope") if key in parts})
    with _get(f"{realm}{'&' if '?' in realm else '?'}{query}", authorization, "application/json") as response:
        answer = _document(response)
    return str(answer.get("token") or answer.get("access_token") or "")


def _document(stream: IO[bytes]) -> dict[str, Any]:
    """A JSON object; ValueError for anything else, at any depth."""
    try:
        document = json.loads(stream.read(MAX_DOCUMENT))
    except RecursionError as error:
        raise ValueError("the answer is nested too deeply") from error
    if not isinstance(document, dict):
        raise ValueError("the answer is not a JSON object")  # noqa: TRY004 - as for anything that cannot be read
    return document


def _refusal(source: ArchiveSource, url: str, code: int) -> FetchError:
    host = _host(url)
    if code == 404:
        return FetchError("ArchiveNotFound", f"{host} has no archive {source.tag}: upload it, or correct spec.bentoTag")
    if code in (401, 403):
        return FetchError(
            "ArchiveDenied",
            f"{host} denies {source.tag} (HTTP {code}): set platform.imageBuilder.store.username and its password",
        )
    return FetchError(
        "StoreFailed", f"{host} answered HTTP {code} for {source.tag}", temporary=code >= 500 or code == 429
    )


def _host(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc


def _copy(
    source: ArchiveSource,
    stream: http.client.HTTPResponse,
    target: IO[bytes] | None,
    limit: int,
    within: float,
    *,
    stopped: Callable[[], bool] = _never,
) -> Archive:
    """Read all of a stream, and write it to the target, if any.

    FetchError above `limit` bytes, after `within` seconds, and when it is `stopped`.
    """
    # A request for a too large archive may be repeated often: do not read a stream whose length is too large.
    _check_size(source, stream.length or 0, limit)
    digest, size = hashlib.sha256(), 0
    end = time.monotonic() + within
    # Read available bytes, not a whole chunk: a slow store would block beyond the deadline.
    while chunk := stream.read1(CHUNK):
        size += len(chunk)
        _check_size(source, size, limit)
        if time.monotonic() > end or stopped():
            raise slow(source, within)
        digest.update(chunk)
        if target is not None:
            target.write(chunk)
    if stream.length:
        # http.client treats the end of a connection as the end of the content.
        raise http.client.IncompleteRead(b"", stream.length)
    return Archive(f"sha256:{digest.hexdigest()}", size)


def slow(source: ArchiveSource, within: float) -> FetchError:
    """The error of an archive that was not read in time."""
    return FetchError("StoreSlow", f"{source.tag} was not read within {within:.0f} s", temporary=True)


def _check_size(source: ArchiveSource, size: int, limit: int) -> None:
    if size > limit:
        raise FetchError(
            "ArchiveTooLarge",
            f"the archive of {source.tag} has more than {limit} bytes: make it smaller, or raise "
            "platform.imageBuilder.maxArchiveSize",
        )


if __name__ == "__main__":
    sys.exit(main(os.environ))
