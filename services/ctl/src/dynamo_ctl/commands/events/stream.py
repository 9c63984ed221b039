"""The work of `dynamoctl events`: listens to the platform's events on NATS."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from dynamo_shared.api.untrusted import times
from dynamo_shared.api.untrusted.reading import mapping
from dynamo_shared.bus.protocol import CaughtUp, Message, Start
from dynamo_shared.bus.streams import EVENTS, STATE
from dynamo_shared.lru import LruCache
from dynamo_shared.wire import specifications, subjects
from dynamo_shared.wire.specifications.platform import PLATFORM

from dynamo_ctl.commands.events import EventQuery
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.kinds import full_name, short_name
from dynamo_ctl.nats_targets import NatsTarget, connected, stream_exists, wait_for_stream
from dynamo_ctl.output import Print, day, one_line, with_reason

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
#: Ten years: no event is older. Seconds.
MAX_AGE = 10 * 365 * 86400
#: Number of remembered recent events, so that an event that repeats after a reconnection is not shown twice.
REMEMBERED = 10_000


def duration(text: str) -> timedelta:
    """Parse `90s`, `10m`, `2h`, `1d`, or a sequence of them. Raises CtlError for anything else."""
    if not re.fullmatch(r"(\d+[smhd])+", text):
        raise CtlError(f"--since {text}: write a duration such as 90s, 10m, 2h or 1d", ExitCode.USAGE)
    seconds = sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text))
    return timedelta(seconds=min(seconds, MAX_AGE))


def filters(query: EventQuery, cluster: str) -> list[str]:
    """NATS subjects of the requested events. Raises CtlError like `selected`."""
    return sorted(
        {
            subjects.event_filter(
                cluster,
                # The platform is in no namespace.
                namespace=None if kind == PLATFORM else query.namespace,
                kind=kind,
                name=query.name,
                event=event,
            )
            for kind, event in selected(query)
        }
    )


def selected(query: EventQuery) -> list[tuple[str | None, str | None]]:
    """The requested kind and event tokens. Raises CtlError for an unknown kind or type."""
    kind = _kind(query.kind) if query.kind else None
    return [_event(each, kind) for each in query.types] or [(kind, None)]


async def listen(
    query: EventQuery,
    where: NatsTarget,
    out: Print,
    *,
    since: timedelta | None = None,
    as_json: bool = False,
    remark: Print = lambda _: None,
) -> None:
    """Print events. Returns after the last stored event unless the query follows. Raises CtlError without a server.

    `remark` gets a line if no stored event matches, because a typo in a query has the same effect.
    """
    earliest = datetime.now(UTC) - since if since is not None else None
    async with connected(where) as bus:
        if not query.follow and not await stream_exists(bus, EVENTS):
            if await stream_exists(bus, STATE):
                remark("no event yet")
                return  # The first event creates the stream.
            raise CtlError(f"no events at {where.options.servers[0]}: the platform has never run there")
        if is_waiting := not await stream_exists(bus, EVENTS):
            remark("no event yet; waiting for the first one")
            await wait_for_stream(bus, EVENTS)
        subscription = await bus.subscribe(EVENTS, filters(query, where.cluster), start=Start.ALL)
        printed: LruCache[str, None] = LruCache(REMEMBERED)
        async for item in subscription:
            if isinstance(item, CaughtUp):
                if not printed and not is_waiting:
                    further = "waiting for new ones" if query.follow else "events are kept for a week"
                    place = f" in namespace {query.namespace} (-A: in all)" if query.namespace else ""
                    remark(f"no stored event of cluster {where.cluster} matches{place}; {further}")
                if not query.follow:
                    return
                is_waiting = True
            if isinstance(item, Message):
                line = _line(item, earliest, printed, as_json=as_json)
                if line is not None:
                    out(line)


def _line(message: Message, earliest: datetime | None, printed: dict[str, None], *, as_json: bool) -> str | None:
    try:
        event = json.loads(message.payload)
        moment, identity = times.moment(event["time"]), str(event["id"])
    except (ValueError, KeyError, TypeError):
        moment = None
    if moment is None:
        return None if as_json else f"?  {message.subject}: not a CloudEvent"
    if identity in printed or (earliest is not None and moment < earliest):
        return None
    printed[identity] = None
    if as_json:
        return message.payload.decode("utf-8", "replace")
    return _readable(event, message.subject, moment)


def _readable(event: dict[str, Any], subject: str, moment: datetime) -> str:
    try:
        about = subjects.parse_event(subject)
        subject_name = f"{about.namespace}/{about.name}" if about.namespace else about.name
        what = f"{about.event:<13} {short_name(about.kind):<8} {subject_name}"
    except ValueError:
        what = f"{event.get('type', '?')} {subject}"
    # A deletion event contains the object's last state, not the reason for its deletion.
    data = {} if subject.endswith(".deleted") else mapping(event.get("data"))
    detail = one_line(with_reason(str(data.get("reason") or ""), str(data.get("message") or "")))
    return f"{day(moment)}{moment.astimezone():%H:%M:%S.%f}"[:-3] + f"  {what}  {detail}".rstrip()


def _kind(name: str) -> str:
    """The token of a kind, by any of its names. Refuses kinds without events: a query would wait for them without end."""
    token = full_name(name)
    known = {spec.kind for spec in specifications.EVENTS}
    if token in known:
        return token
    if "/" in name:
        raise CtlError(f"--kind {name}: write --kind KIND --name NAME", ExitCode.USAGE)
    names = ", ".join(sorted(map(short_name, known)))
    raise CtlError(f"--kind {name}: this kind has no events; use one of {names}", ExitCode.USAGE)


def _event(type_: str, kind: str | None) -> tuple[str | None, str | None]:
    """Kind and event tokens of a type in its short or full form."""
    known = sorted({spec.event for spec in specifications.EVENTS})
    for spec in specifications.EVENTS:
        if spec.type == type_:
            return kind or spec.kind, spec.event
    if type_ in known:
        return kind, type_
    raise CtlError(f"--type {type_}: unknown event; use one of {', '.join(known)}", ExitCode.USAGE)
