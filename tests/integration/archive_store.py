"""An archive store and an artifact registry: a small HTTP server."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

from tests.building.http_server import Handler, running


class Store(ThreadingHTTPServer):
    """Serves `archives` by tag: on the routes of a store, and as artifacts with one layer."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), _Handler)
        self.host = host
        self.archives: dict[str, bytes] = {}
        #: The required `user:password`; for artifacts, the login that gets a token.
        self.login = ""
        #: Whether it only has the routes of older stores.
        self.old = False
        #: The answer in place of each manifest.
        self.manifest = b""
        #: The status code of every answer.
        self.failing = 0
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{self.host}:{self.server_address[1]}"

    @property
    def registry(self) -> str:
        """Its address as a registry."""
        return f"oci+http://{self.host}:{self.server_address[1]}/team"


class _Handler(Handler):
    server: Store

    def reply(self) -> None:
        store, path = self.server, self.path.partition("?")[0]
        store.paths.append(self.path)
        given = self.headers.get("Authorization", "")
        basic = f"Basic {base64.b64encode(store.login.encode()).decode()}"
        if store.failing:
            self.answer(store.failing)
        elif path == "/token":
            self.answer(200 if given == basic else 401, b'{"token": "a-token"}')
        elif path.startswith("/v2/"):
            if store.login and given != "Bearer a-token":
                self.answer(401, WWW_Authenticate=f'Bearer realm="{store.url}/token",service="s",scope="pull"')
            else:
                self._artifact(path.split("/"))
        elif store.login and given != basic:
            self.answer(401)
        else:
            self._download(path.split("/"))

    def _download(self, parts: list[str]) -> None:
        kinds = ("bento_repositories", "bentos") if self.server.old else ("dynamo_nims", "versions")
        match parts:
            case ["", "api", "v1", first, name, second, version, "download"] if (first, second) == kinds:
                content = self.server.archives.get(f"{name}:{version}")
                self.answer(404 if content is None else 200, content or b"")
            case _:
                self.answer(404)

    def _artifact(self, parts: list[str]) -> None:
        by_digest = {_digest(each): each for each in self.server.archives.values()}
        match parts:
            case ["", "v2", "team", name, "manifests", version] if f"{name}:{version}" in self.server.archives:
                content = self.server.archives[f"{name}:{version}"]
                layers = [{"digest": _digest(content), "size": len(content)}]
                self.answer(200, self.server.manifest or json.dumps({"schemaVersion": 2, "layers": layers}).encode())
            case ["", "v2", "team", _, "blobs", digest] if digest in by_digest:
                self.answer(200, by_digest[digest])
            case _:
                self.answer(404)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextmanager
def archive_store(host: str = "127.0.0.1") -> Iterator[Store]:
    """A store that runs during the block."""
    with running(store := Store(host)):
        yield store
