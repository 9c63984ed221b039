"""What services asked the API server for, from its audit log, by the user agent that each service has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

#: `dynamo-platform/0.1.0 (dynamo-pod-builder)`: the field manager in brackets. The planner has a second one.
_AGENT = re.compile(r"^dynamo-platform/\S+ \(dynamo-([a-z-]+?)(?:-plans)?\)$")
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


class _ObjectRef(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    apiGroup: str = ""  # noqa: N815 - the log's name
    name: str = ""
    namespace: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Event(msgspec.Struct):
    verb: str
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
        plural = f"{about.resource}/{about.subresource}" if about.subresource else about.resource
        found = Request(
            agent[1], event.verb, about.apiGroup, plural, _normal(about.name), about.namespace, code == _FORBIDDEN
        )
        yield found
        if event.verb == "patch" and code == _CREATED:
            yield found._replace(verb="create")


def _normal(name: str) -> str:
    """Webhooks of a platform that serves one namespace are named after it; the chart installs none for such a platform."""
    return "dynamo-admission" if name.startswith("dynamo-admission-") else name


def counted(folder: Path) -> Counter[Request]:
    """All requests of all logs of a folder, by how often they were made; names count only where a right names objects."""
    found: Counter[Request] = Counter()
    for log in sorted(folder.glob("*.jsonl")):
        with log.open("rb") as lines:
            found.update(requests(lines))
    return found
