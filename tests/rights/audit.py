"""What services asked the API server for, from its audit log, by the user agent that each service has."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from dynamo_shared.api.rights import OWN_CLUSTER_ROLE, SSH_SECRET, WEBHOOK_SECRET

#: `dynamo-platform/0.1.0 (dynamo-pod-builder)`: the field manager in brackets; that of dynadmin is its name.
_AGENT = re.compile(r"^dynamo-platform/\S+ \((?:dynamo-)?([a-z-]+?)\)$")
#: Services that act under another name than their own: what was one service once.
_ACTS_AS = {"planner": "profiler", "planner-plans": "planner"}
_CREATED, _FORBIDDEN = 201, 403


class Request(NamedTuple):
    """One kind of request: who, which verb, on which resource (with subresource), of which object."""

    service: str
    verb: str
    group: str
    plural: str
    name: str
    namespace: str
    forbidden: bool = False
    #: Who made it, as the API server knows the caller.
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
    """Requests of services for resources. A patch that created its object took the right to create, too."""
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
            # With the rights of the impersonated user; what the service itself needed is to act as that user.
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
    """As rights name it: webhooks of a platform of one namespace are named after that, the chart names the others."""
    if plural == "clusterroles":
        return OWN_CLUSTER_ROLE
    if plural == "secrets":
        return WEBHOOK_SECRET if service == "admission" else SSH_SECRET
    return "dynamo-admission" if name.startswith("dynamo-admission-") else name


def counted(folder: Path) -> Counter[Request]:
    """All requests of all logs of a folder, by how often they were made; names count only where a right names objects."""
    results: Counter[Request] = Counter()
    for log in sorted(folder.glob("*.jsonl")):
        with log.open("rb") as lines:
            results.update(requests(lines))
    return results
