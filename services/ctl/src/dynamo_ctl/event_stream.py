"""Listening to the platform's events on NATS: what `dynamoctl events` does."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from dynamo_shared.bus import specifications, subjects
from dynamo_shared.bus.errors import StreamNotFoundError
from dynamo_shared.bus.nats import NatsBus, NatsOptions
from dynamo_shared.bus.permissions import PEOPLE
from dynamo_shared.bus.protocol import Bus, BusHealth, CaughtUp, Message, Start
from dynamo_shared.bus.streams import EVENTS, STATE, StreamSpec
from dynamo_shared.runtime.connections import nats_options

from dynamo_ctl import running
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.settings import load

Print = Callable[[str], object]

#: Short names of kinds, and their tokens in subjects.
KINDS = {
    "dgd": "dynamographdeployment",
    "dgdr": "dynamographdeploymentrequest",
    "dgdsa": "dynamographdeploymentscalingadapter",
    "dckpt": "dynamocheckpoint",
    "dm": "dynamomodel",
    "dmodel": "dynamomodel",
}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
#: Seconds to wait for a server before saying that it does not answer.
CONNECT_WITHIN = 5.0
#: Seconds between looks for a platform that has not made its streams yet.
POLL_EVERY = 0.2
#: Recent events that are kept, so that a repeated event after a reconnect is not shown twice.
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events, and whether to wait for more. None stands for any."""

    namespace: str | None = None
    kind: str | None = None
    name: str | None = None
    types: tuple[str, ...] = ()
    since: timedelta | None = None
    follow: bool = False


class Where(NamedTuple):
    """A NATS server, and which cluster's events to listen to there."""

    options: NatsOptions
    cluster: str


def duration(text: str) -> timedelta:
    """`90s`, `10m`, `2h`, `1d`, or several of them. CtlError for anything else."""
    if not re.fullmatch(r"(\d+[smhd])+", text):
        raise CtlError(f"--since {text}: write a duration such as 90s, 10m, 2h or 1d", ExitCode.USAGE)
    return timedelta(seconds=sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text)))


def server(url: str | None, cluster: str | None, config: Path | None) -> Where:
    """The server of the command line, else of the settings, else of the platform that runs here. CtlError for none."""
    settings = load(config)
    here = running.find()
    named = "nats" in settings.platform.model_fields_set
    if url is None and not named and here is None:
        raise CtlError(
            "no NATS server known: give --nats URL or --config FILE, or call this where dynamoctl up or demo runs",
            ExitCode.UNREACHABLE,
        )
    options = nats_options(settings.platform.nats, "dynamoctl")
    local = url is None and not named and here is not None
    if url is not None:
        options = NatsOptions(servers=(url,), name="dynamoctl") if not named else _at(options, url)
    elif here is not None and local:
        options = _on_this_machine(_at(options, here.nats), here)
    return Where(options, cluster or (here.cluster if here is not None and local else settings.platform.cluster_name))


def filters(query: EventQuery, cluster: str) -> list[str]:
    """NATS subjects of the events that are asked for. CtlError for a kind or a type that does not exist."""
    kind = _kind(query.kind) if query.kind else None
    asked: list[tuple[str | None, str | None]] = [_event(each, kind) for each in query.types]
    return sorted(
        {
            subjects.event_filter(cluster, namespace=query.namespace, kind=of_kind, name=query.name, event=event)
            for of_kind, event in asked or [(kind, None)]
        }
    )


@asynccontextmanager
async def connected(where: Where) -> AsyncIterator[Bus]:
    """A connection for as long as the block runs. CtlError where no server answers."""
    bus = await NatsBus.connect(where.options, wait=CONNECT_WITHIN)
    try:
        if bus.health is not BusHealth.CONNECTED:
            trouble = f": {bus.trouble}" if bus.trouble else ""
            raise CtlError(
                f"NATS does not answer at {', '.join(where.options.servers)}{trouble}; is the platform running?",
                ExitCode.UNREACHABLE,
            )
        yield bus
    finally:
        await bus.close()


async def listen(query: EventQuery, where: Where, out: Print, *, as_json: bool = False) -> None:
    """Print events; returns after the last stored one unless the query follows. CtlError where there is no server."""
    earliest = datetime.now(UTC) - query.since if query.since is not None else None
    async with connected(where) as bus:
        if not query.follow and not await stands(bus, EVENTS):
            if await stands(bus, STATE):
                return  # The stream of events is made with the first of them.
            raise CtlError(f"no events at {where.options.servers[0]}: the platform has never run there")
        await until_stands(bus, EVENTS)
        subscription = await bus.subscribe(EVENTS, filters(query, where.cluster), start=Start.ALL)
        printed: dict[str, None] = {}
        async for item in subscription:
            if isinstance(item, CaughtUp) and not query.follow:
                return
            if isinstance(item, Message):
                line = _line(item, earliest, printed, as_json=as_json)
                if line is not None:
                    out(line)


async def until_stands(bus: Bus, stream: StreamSpec) -> None:
    """Return as soon as the platform has made a stream. The server does not announce it, it can only be asked."""
    while not await stands(bus, stream):  # noqa: ASYNC110
        await asyncio.sleep(POLL_EVERY)


async def stands(bus: Bus, stream: StreamSpec) -> bool:
    """Whether the platform has made a stream."""
    try:
        await bus.stream_state(stream)
    except StreamNotFoundError:
        return False
    return True


def _line(message: Message, earliest: datetime | None, printed: dict[str, None], *, as_json: bool) -> str | None:
    try:
        event = json.loads(message.payload)
        moment = datetime.fromisoformat(event["time"])
        identity = str(event["id"])
    except (ValueError, KeyError, TypeError):
        return None if as_json else f"?  {message.subject}: not a CloudEvent"
    if identity in printed or (earliest is not None and moment < earliest):
        return None
    printed[identity] = None
    if len(printed) > REMEMBERED:
        del printed[next(iter(printed))]
    if as_json:
        return message.payload.decode("utf-8", "replace")
    return _readable(event, message.subject, moment)


def _readable(event: dict[str, Any], subject: str, moment: datetime) -> str:
    try:
        about = subjects.parse_event(subject)
        place = f"{about.namespace}/{about.name}" if about.namespace else about.name
        what = f"{about.event:<12} {about.kind:<22} {place}"
    except ValueError:
        what = f"{event.get('type', '?')} {subject}"
    data = event.get("data") or {}
    detail = ": ".join(str(data[name]) for name in ("reason", "message") if data.get(name))
    return f"{moment.astimezone():%H:%M:%S.%f}"[:-3] + f"  {what}  {detail}".rstrip()


def _kind(name: str) -> str:
    """Token of a kind, written in short or in full. A kind without events would be waited for without end."""
    token = KINDS.get(name.lower(), name.lower())
    known = {spec.kind for spec in specifications.EVENTS}
    if token in known:
        return token
    short = {full: each for each, full in reversed(KINDS.items())}
    names = ", ".join(sorted(short.get(each, each) for each in known))
    raise CtlError(f"--kind {name}: no event is about this kind; there are {names}", ExitCode.USAGE)


def _event(type_: str, kind: str | None) -> tuple[str | None, str | None]:
    """Kind and event tokens of a type, written in short or in full."""
    known = sorted({spec.event for spec in specifications.EVENTS})
    for spec in specifications.EVENTS:
        if spec.type == type_:
            return kind or spec.kind, spec.event
    if type_ in known:
        return kind, type_
    raise CtlError(f"--type {type_}: no such event; there are {', '.join(known)}", ExitCode.USAGE)


def _on_this_machine(options: NatsOptions, here: running.RunningPlatform) -> NatsOptions:
    """As the user for people, where the platform's NATS is one that it started. CtlError where its password is not readable."""
    if not here.nats_credentials:
        return options
    file = Path(here.nats_credentials) / PEOPLE
    try:
        return replace(options, user=PEOPLE, password=file.read_text(encoding="utf-8").strip())
    except OSError as error:
        raise CtlError(
            f"{file}: {error.strerror}; only the user who runs the platform may read it", ExitCode.UNREACHABLE
        ) from error


def _at(options: NatsOptions, url: str) -> NatsOptions:
    return replace(options, servers=(url,))
