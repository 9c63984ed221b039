"""`dynamoctl events --server`: the Kubernetes Events of an object, over the REST API."""

import json
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.kinds import short_name
from dynamo_ctl.output import Print, day, one_line
from dynamo_ctl.remote import COLLECTIONS, Remote

#: Largest number of events in an answer of the API.
_MAX_EVENTS = 2000


async def events(
    remote: Remote,
    kind: str,
    name: str,
    out: Print,
    *,
    since: timedelta | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Print the events of an object and of all objects that it owns, oldest first."""
    if (collection := COLLECTIONS.get(short_name(kind))) is None:
        raise CtlError(f"--kind {kind}: with --server, use one of {', '.join(COLLECTIONS)}", ExitCode.USAGE)
    earliest = datetime.now(UTC) - since if since is not None else None

    def show(event: dict[str, Any]) -> None:
        moment = datetime.fromisoformat(event["time"])
        if earliest is None or moment >= earliest:
            out(json.dumps(event) if as_json else _readable(event, moment))

    path = remote.path(collection, name, "events", limit=_MAX_EVENTS, watch="true" if follow else "")
    if not follow:
        for event in reversed((await remote.listed(path, "time", "object"))["items"]):
            show(event)
        return
    async with aclosing(remote.follow(path)) as stream:
        async for event in stream:
            if event.name == "event":
                show(event.data)


def _readable(event: dict[str, Any], moment: datetime) -> str:
    about = f"{event['object']['kind']}/{event['object']['name']}"
    text = one_line(f"{about}  {event['reason']}: {event['message']}")
    return f"{day(moment)}{moment.astimezone():%H:%M:%S}  {event['type']:<7}  {text}"
