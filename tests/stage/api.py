"""A minimal client of the API server for one user: any request, any bytes, and the unmodified answer.

Unlike the platform's own client it never retries or rejects anything, so it can send what a hostile user would.
"""

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource, key_of, of

APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of an answer; status 0 if there was none."""

    status: int
    body: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    def __str__(self) -> str:
        return f"{self.status} {self.body[:300].decode(errors='replace')}"


class Api:
    """One user's connections to the API server; enter it to open them."""

    def __init__(self, kubeconfig: Path, timeout: float = 60.0) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = str(cluster["server"])
        self._tls = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode("ascii")
        )
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = Path(folder) / "crt", Path(folder) / "key"
            certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
            key.touch(mode=0o600)
            key.write_bytes(base64.b64decode(user["client-key-data"]))
            self._tls.load_cert_chain(certificate, key)
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=AT_ONCE)
        self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **headers: str
    ) -> Answer:
        """One request; `body` is bytes, or a value that becomes JSON."""
        assert self._session is not None
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        async with self._slots:
            try:
                async with self._session.request(
                    method, self.server + path, data=data, headers={"Content-Type": content_type, **headers}
                ) as response:
                    return Answer(response.status, await response.read())
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                return Answer(0, repr(error).encode())

    async def create(self, obj: KubeObject) -> Answer:
        """Create an object of a kind that the platform knows; for others there is `create_at`."""
        return await self.create_at(of(obj), obj)

    async def create_at(self, resource: Resource, obj: KubeObject) -> Answer:
        """Create an object of a resource."""
        return await self.request("POST", resource.path(obj["metadata"].get("namespace", "")), obj)

    async def create_all(self, objects: Iterable[KubeObject]) -> list[Answer]:
        """Create many, several concurrently."""
        return await asyncio.gather(*(self.create(obj) for obj in objects))

    async def get(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        """An object, or None if it does not exist."""
        answer = await self.request("GET", resource.path(namespace, name))
        return answer.json() if answer.ok else None

    async def list(self, resource: Resource, namespace: str = "", query: str = "") -> list[KubeObject]:
        """All objects of a namespace, or of all; empty if the resource is not served."""
        answer = await self.request("GET", resource.path(namespace) + (f"?{query}" if query else ""))
        return (answer.json().get("items") or []) if answer.ok else []

    async def patch(self, resource: Resource, namespace: str, name: str, patch: KubeObject, sub: str = "") -> Answer:
        """Merge patch of an object or of its subresource."""
        return await self.request("PATCH", resource.path(namespace, name, sub), patch, MERGE_PATCH)

    async def apply(self, obj: KubeObject, manager: str = "tenant") -> Answer:
        """Server-side apply with force."""
        key = key_of(obj)
        path = of(obj).path(key.namespace, key.name)
        return await self.request("PATCH", f"{path}?fieldManager={manager}&force=true", obj, APPLY)

    async def delete(self, resource: Resource, namespace: str, name: str) -> Answer:
        """Delete an object."""
        return await self.request("DELETE", resource.path(namespace, name))

    async def delete_all(self, resource: Resource, namespace: str) -> Answer:
        """Delete all objects of a resource in a namespace with one request."""
        return await self.request("DELETE", f"{resource.path(namespace)}?gracePeriodSeconds=0")
