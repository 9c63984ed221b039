"""Requests of services to the API server, from its audit log, by the user agent of each service."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from dynamo_shared.api.rights import OWN_CLUSTER_ROLE, SSH_SECRET, WEBHOOK_SECRET

#: `dynamo-platform/0.1.0 (dynamo-pod-builder)`: the field manager is in brackets; dynadmin has its own name there.
_AGENT = re.compile(r"^dynamo-platform/\S+ \((?:dynamo-)?([a-z-]+?)\)$")
#: Services with another name in requests, because they were part of another service before.
_ACTS_AS = {"planner": "profiler", "planner-plans": "planner"}
_CREATED, _FORBIDDEN = 201, 403


class Request(NamedTuple):
    """One kind of request: service, verb, resource (with subresource), object name."""

    service: str
    verb: str
    group: str
    plural: str
    name: str
    namespace: str
    forbidden: bool = False
    #: The user name of the caller in the API server.
    user: str = ""


class _ObjectRef(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    apiGroup: str = ""  # noqa: N815 - the log's name
    name: str = ""
    namespace: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _User(msgspec.Struct):
    username: str = ""


class _Event(msgspec.Struct):
    verb: str
    user: _User = msgspec.field(default_factory=_User)
    impersonatedUser: _User | None = None  # noqa: N815 - the log's name
    userAgent: str = ""  # noqa: N815 - the log's name
    objectRef: _ObjectRef | None = None  # noqa: N815 - the log's name
    responseStatus: _Status | None = None  # noqa: N815 - the log's name


_decode = msgspec.json.Decoder(_Event).decode


def requests(lines: Iterable[bytes]) -> Iterator[Request]:
    """Requests of services for resources. A patch that created its object needed the right to create, too."""
    for line in lines:
        try:
            event = _decode(line)
        except msgspec.DecodeError:
            continue  # The last line of a server that was killed.
        agent = _AGENT.match(event.userAgent)
        about, code = event.objectRef, event.responseStatus.code if event.responseStatus else 0
        if agent is None or about is None or not about.resource:
            continue
        service = _ACTS_AS.get(agent[1], agent[1])
        plural = f"{about.resource}/{about.subresource}" if about.subresource else about.resource
        if event.impersonatedUser is not None:
            # It used the rights of the impersonated user; the service itself only needed the right to impersonate.
            yield _impersonation(service, event)
            continue
        result = Request(
            *(service, event.verb, about.apiGroup, plural, _normal(service, plural, about.name), about.namespace),
            forbidden=code == _FORBIDDEN,
            user=event.user.username,
        )
        yield result
        if event.verb == "patch" and code == _CREATED:
            yield result._replace(verb="create")


def _impersonation(service: str, event: _Event) -> Request:
    assert event.impersonatedUser is not None
    name = event.impersonatedUser.username
    plural = "serviceaccounts" if name.startswith("system:serviceaccount:") else "users"
    return Request(service, "impersonate", "", plural, name, "", user=event.user.username)


def _normal(service: str, plural: str, name: str) -> str:
    """The name as in the rights: webhooks of a one-namespace platform have its name, others the chart's."""
    if plural == "clusterroles":
        return OWN_CLUSTER_ROLE
    if plural == "secrets":
        return WEBHOOK_SECRET if service == "admission" else SSH_SECRET
    return "dynamo-admission" if name.startswith("dynamo-admission-") else name


def counted(folder: Path) -> Counter[Request]:
    """All requests in all logs of a folder with their counts; names are kept only if a right names objects."""
    results: Counter[Request] = Counter()
    for log in sorted(folder.glob("*.jsonl")):
        with log.open("rb") as lines:
            results.update(requests(lines))
    return results
