"""What `scale`, `events` and `dgdr` do with `--server`: the same over the REST API."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.yaml_output import to_yaml

from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.remote import Remote, path_of
from dynamo_ctl.sources import COLLECTIONS

Print = Callable[[str], object]


async def scale(
    remote: Remote,
    namespace: str,
    graph: str,
    replicas: Sequence[tuple[str, int]],
    out: Print,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Change one component after the other: unlike the scaler's command, the API has no change of several at once."""
    described = await remote.request("GET", path_of(namespace, COLLECTIONS["dgd"], graph))
    named = [(_component(described, target), count) for target, count in replicas]
    path = path_of(namespace, COLLECTIONS["dgd"], graph, "scale", dryRun="true" if dry_run else "")
    for component, count in named:
        answer = await remote.request("POST", path, {"component": component, "replicas": count})
        if as_json:
            out(json.dumps(answer))
            continue
        would = "would have" if dry_run else "has"
        out(f"{component} {would} {answer['replicas']} replicas (written to the {answer['via']})")
        for warning in answer["warnings"]:
            out(f"warning: {warning}")


async def events(
    remote: Remote,
    namespace: str,
    kind: str,
    name: str,
    out: Print,
    *,
    since: timedelta | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Events of an object and of all that it owns, oldest first."""
    if kind not in COLLECTIONS:
        raise CtlError(f"--kind {kind}: with --server one of {', '.join(COLLECTIONS)}", ExitCode.USAGE)
    earliest = datetime.now(UTC) - since if since is not None else None

    def show(event: dict[str, Any]) -> None:
        moment = datetime.fromisoformat(event["time"])
        if earliest is None or moment >= earliest:
            out(json.dumps(event) if as_json else _readable(event, moment))

    path = path_of(namespace, COLLECTIONS[kind], name, "events", watch="true" if follow else "")
    if not follow:
        for event in reversed((await remote.request("GET", path))["items"]):
            show(event)
        return
    async with aclosing(remote.follow(path)) as stream:
        async for event in stream:
            if event.name == "event":
                show(event.data)


async def request_object(remote: Remote, namespace: str, name: str) -> KubeObject:
    """A DynamoGraphDeploymentRequest."""
    request: KubeObject = await remote.request("GET", path_of(namespace, COLLECTIONS["dgdr"], name))
    return request


async def promote(remote: Remote, namespace: str, name: str, number: int | None, out: Print, *, dry_run: bool) -> None:
    """Deploy a point of a request, without a number the selected one."""
    if number is None:
        candidates = await remote.request("GET", path_of(namespace, COLLECTIONS["dgdr"], name, "candidates"))
        number = next((each["point"] for each in candidates["items"] if each["selected"]), 1)
    path = path_of(namespace, COLLECTIONS["dgdr"], name, "promote", dryRun="true" if dry_run else "")
    graph = await remote.request("POST", path, {"point": number})
    if dry_run:
        out(to_yaml(graph).rstrip())
    else:
        out(f"{graph['kind']} {graph['metadata']['name']} deployed in namespace {namespace}")


def _component(graph: KubeObject, target: str) -> str:
    """The component of a name, or the only one of a type. CtlError."""
    components = graph["spec"].get("components") or []
    if any(each["name"] == target for each in components):
        return target
    of_type = [each["name"] for each in components if each.get("type") == target]
    if len(of_type) != 1:
        names = ", ".join(each["name"] for each in components)
        raise CtlError(f"{target}: {len(of_type)} components have this type; name one of {names}")
    return str(of_type[0])


def _readable(event: dict[str, Any], moment: datetime) -> str:
    about = f"{event['object']['kind']}/{event['object']['name']}"
    return f"{moment.astimezone():%H:%M:%S}  {event['type']:<7}  {about}  {event['reason']}: {event['message']}"
