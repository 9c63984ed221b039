"""The work of `dynamoctl workers` and `dynamoctl models`: shows what model-discovery publishes."""

import asyncio

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus.protocol import Bus
from dynamo_shared.bus.streams import STATE
from dynamo_shared.state import messages
from dynamo_shared.state.last_messages import last_messages
from dynamo_shared.wire import subjects
from dynamo_shared.wire.discovered import MODELS, WORKERS, ServedModelData, WorkerData, model_of, worker_of

from dynamo_ctl.commands.discovered import DiscoveredQuery
from dynamo_ctl.commands.parameters import Output
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.nats_targets import NatsTarget, connected, stream_exists
from dynamo_ctl.output import Print, age, columns, echo_error, encoded, object_list

RESOURCES = {"workers": WORKERS, "models": MODELS}
HEADERS = {
    "workers": ("NAMESPACE", "NAME", "ROLE", "GRAPH", "POD", "SOURCE", "KV TOKENS", "AGE", "MODELS"),
    "models": ("NAMESPACE", "MODEL", "AVAILABLE", "MISSING", "WORKERS", "GRAPH", "CONTEXT", "AGE"),
}
#: Time-out for reading a whole view. Seconds.
READ_WITHIN = 30.0
_NONE = "-"


async def show(what: str, query: DiscoveredQuery, where: NatsTarget, out: Print) -> None:
    """Print the current `workers` or `models`. Raises CtlError if there is no server, or no model-discovery."""
    async with connected(where) as bus:
        for line in await lines(what, query, bus, where.cluster):
            out(line)


async def lines(what: str, query: DiscoveredQuery, bus: Bus, cluster: str) -> list[str]:
    """The lines to print. Raises CtlError if model-discovery does not publish these views."""
    if not await stream_exists(bus, STATE):
        raise CtlError("this NATS server has no published objects: the platform has never run with it")
    objects, published = await _read(what, query, bus, cluster)
    if not published and not objects:
        raise CtlError(f"{what} are not published: check that model-discovery runs, for cluster {cluster!r}")
    if query.output is not Output.TABLE:
        return [encoded(object_list(objects), query.output)]
    if not objects:
        place = f" in namespace {query.namespace} (-A: in all)" if query.namespace else ""
        echo_error(f"no {what} are registered{place}; pods on simulated nodes never register")
        return []
    rows = [_worker(obj, worker_of(obj)) if what == "workers" else _model(obj, model_of(obj)) for obj in objects]
    return columns(HEADERS[what], rows)


async def _read(what: str, query: DiscoveredQuery, bus: Bus, cluster: str) -> tuple[list[KubeObject], bool]:
    """The objects, sorted, and whether they are complete (their marker exists)."""
    objects: dict[str, KubeObject] = {}
    published = False
    try:
        async with asyncio.timeout(READ_WITHIN):
            async for message in last_messages(bus, cluster, [RESOURCES[what]]):
                if message is None:
                    objects.clear()
                elif subjects.parse_synced(message.subject) is not None:
                    published = True
                elif messages.is_tombstone(message.headers):
                    objects.pop(message.subject, None)
                else:
                    objects[message.subject] = messages.decode_object(message.payload, message.headers)
    except TimeoutError:
        raise CtlError(f"NATS stopped answering while {what} were read", ExitCode.UNREACHABLE) from None
    matching = [obj for obj in objects.values() if _matches(obj, query)]
    return sorted(matching, key=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])), published


def _matches(obj: KubeObject, query: DiscoveredQuery) -> bool:
    in_namespace = query.namespace is None or obj["metadata"].get("namespace", "") == query.namespace
    return in_namespace and (query.graph is None or obj["spec"].get("graphDeployment") == query.graph)


def _worker(obj: KubeObject, worker: WorkerData) -> list[str]:
    tokens = max((card.max_kv_tokens for card in worker.models), default=0)
    models = ", ".join(card.name for card in worker.models)
    return [
        worker.namespace or _NONE, worker.name, worker.role or _NONE, worker.graph_deployment or _NONE, worker.pod or _NONE,
        worker.source, str(tokens) if tokens else _NONE, age(obj["metadata"]["creationTimestamp"]), models or _NONE,
    ]  # fmt: skip


def _model(obj: KubeObject, model: ServedModelData) -> list[str]:
    counts = ", ".join(f"{count} {role or 'unknown'}" for role, count in model.workers.items())
    return [
        model.namespace or _NONE, model.model, "yes" if model.available else "no", ", ".join(model.missing) or _NONE, counts,
        model.graph_deployment or _NONE, str(model.context_length or _NONE), age(obj["metadata"]["creationTimestamp"]),
    ]  # fmt: skip
