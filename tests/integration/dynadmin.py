"""The dynadmin service on real servers, and callers with their own tokens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import aiohttp
from dynamo_ctl.planned import planned
from dynamo_dynadmin.api.simulation import Simulation
from dynamo_dynadmin.app import DynadminService
from dynamo_shared.api.resources import EVENTS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Resource
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reviews import review_access
from dynamo_shared.kube.transport import Outgoing
from dynamo_shared.runtime import Settings, running
from dynamo_watcher.app import WatcherService
from multidict import CIMultiDict

from tests.building.objects import object_of

from .platform import eventually, settings

EVERYTHING = {"verbs": ["*"], "apiGroups": ["nvidia.com"], "resources": ["*"]}
WATCHING = {"verbs": ["list", "watch"], "apiGroups": ["events.k8s.io"], "resources": ["events"]}
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: CIMultiDict[str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Api:
    """The service; `token` is the usual caller's."""

    url: str
    session: aiohttp.ClientSession
    token: str = ""

    async def __call__(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        used = self.token if token is None else token
        if used:
            given.setdefault("Authorization", f"Bearer {used}")
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            given.setdefault("Content-Type", "application/json")
        async with self.session.request(
            method, self.url + path, data=data, headers=given, allow_redirects=False
        ) as response:
            return Answer(response.status, CIMultiDict(response.headers), await response.read())

    @asynccontextmanager
    async def stream(
        self, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> AsyncIterator[Events]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given["Authorization"] = f"Bearer {self.token if token is None else token}"
        given["Accept"] = "text/event-stream"
        method = "GET" if body is None else "POST"
        async with self.session.request(method, self.url + path, json=body, headers=given) as response:
            yield Events(response)


class Events:
    """Server-sent events in order of arrival."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.response = response

    async def next(self) -> tuple[str, Any, str]:
        """Event, data, id of the next event, without heartbeats."""
        event, data, identity = "", "", ""
        async for raw in self.response.content:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                data = line[6:]
            elif line.startswith("id: "):
                identity = line[4:]
            elif not line and event:
                return event, json.loads(data), identity
        return "closed", None, ""

    async def until(self, expected: str) -> list[tuple[str, Any, str]]:
        """Events up to and including the first of this name."""
        results = []
        while True:
            results.append(await self.next())
            if results[-1][0] in (expected, "closed"):
                return results


@asynccontextmanager
async def dynadmin(
    kubeconfig: Path, nats: str, simulation: Callable[[Settings], Simulation] | None = None, /, **extra: str
) -> AsyncIterator[Api]:
    """Watcher and dynadmin, ready."""
    configured = settings(
        kubeconfig,
        nats,
        PLATFORM__DYNADMIN__HOST="127.0.0.1",
        PLATFORM__DYNADMIN__PORT="0",
        PLATFORM__DYNADMIN__DRAIN="0s",
        **{f"PLATFORM__DYNADMIN__{name}": value for name, value in extra.items()},
    )
    service = DynadminService(planned, simulation)
    async with running([WatcherService(), service], configured) as up:
        await up.ready()
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield Api(f"http://127.0.0.1:{service.port}", session)


async def account(kube: KubeClient, namespace: str, name: str, *rules: dict[str, Any]) -> str:
    """A service account with a role of these rules; its token."""
    await kube.create(SERVICE_ACCOUNTS, object_of(SERVICE_ACCOUNTS, name, namespace))
    if rules:
        await kube.create(ROLES, object_of(ROLES, name, namespace, rules=list(rules)))
        await kube.create(ROLE_BINDINGS, object_of(ROLE_BINDINGS, name, namespace, **_bound("Role", name, namespace)))
        await _known(kube, _user(namespace, name), rules[0], namespace)
    return await token_of(kube, namespace, name)


async def may(kube: KubeClient, namespace: str, name: str, subject: dict[str, str], *rules: dict[str, Any]) -> None:
    """Grant a user EVERYTHING and these rules, by a role."""
    await kube.create(ROLES, object_of(ROLES, name, namespace, rules=[EVERYTHING, *rules]))
    group = "rbac.authorization.k8s.io"
    bound = {"roleRef": {"apiGroup": group, "kind": "Role", "name": name}, "subjects": [{**subject, "apiGroup": group}]}
    await kube.create(ROLE_BINDINGS, object_of(ROLE_BINDINGS, name, namespace, **bound))
    await _known(kube, subject["name"], EVERYTHING, namespace)


async def guest(kube: KubeClient, namespace: str, name: str) -> str:
    """A service account of another namespace, which has its own limits, with EVERYTHING here; its token."""
    unique = f"{namespace}-{name}"
    token = await account(kube, "default", unique)
    await may(kube, namespace, name, {"kind": "User", "name": _user("default", unique)})
    return token


async def token_of(kube: KubeClient, namespace: str, name: str, seconds: int = 3600) -> str:
    """A token of a service account."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
    path = SERVICE_ACCOUNTS.path(namespace, name, "token")
    outgoing = Outgoing(method="POST", path=path, body=json.dumps(request).encode())
    content = await kube._transport.request(outgoing)
    return str(json.loads(content)["status"]["token"])


async def cluster_wide(kube: KubeClient, namespace: str, account_name: str, *rules: dict[str, Any]) -> None:
    """Grant rights of an account in the whole cluster."""
    name = f"{namespace}-{account_name}"
    await kube.create(CLUSTER_ROLES, object_of(CLUSTER_ROLES, name, "", rules=list(rules)))
    bound = _bound("ClusterRole", name, namespace, account_name)
    await kube.create(CLUSTER_ROLE_BINDINGS, object_of(CLUSTER_ROLE_BINDINGS, name, "", **bound))


async def happens(kube: KubeClient, about: dict[str, Any], reason: str, kind: str = "") -> None:
    """Create a Kubernetes Event about an object."""
    metadata = about["metadata"]
    await kube.create(
        EVENTS,
        {
            **EVENTS.type_meta,
            "metadata": {"generateName": "e-", "namespace": metadata["namespace"]},
            "eventTime": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "type": "Normal",
            "reason": reason,
            "action": "Test",
            "note": reason,
            "reportingController": "tests",
            "reportingInstance": "1",
            "regarding": {
                "kind": kind or about["kind"],
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
        },
    )


def _user(namespace: str, account_name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{account_name}"


async def _known(kube: KubeClient, user: str, rule: dict[str, Any], namespace: str) -> None:
    """Return once the API server grants the first right of a rule: it learns of roles by its own watch."""
    resource, _, subresource = rule["resources"][0].partition("/")
    attributes = {
        "namespace": namespace,
        "verb": rule["verbs"][0],
        "group": rule["apiGroups"][0],
        "resource": resource,
        "subresource": subresource,
        "name": rule.get("resourceNames", [""])[0],
    }
    review = {"user": user, "resourceAttributes": attributes}
    await eventually(
        lambda: review_access(kube, review), f"the API server grants {user} its rights", where=itemgetter(0)
    )


def _bound(kind: str, role: str, namespace: str, name: str = "") -> dict[str, Any]:
    return {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name or role, "namespace": namespace}],
    }
