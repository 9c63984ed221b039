"""Routes that only one kind of object has: scale, restart, promote, chat, decisions and their replay."""

from collections.abc import Iterator
from functools import partial

from dynamo_dynadmin.api.actions import Actions
from dynamo_dynadmin.api.decisions import DEFAULT_LIMIT, MOST
from dynamo_dynadmin.api.kinds import ADAPTERS, DEPLOYMENTS, REQUESTS
from dynamo_dynadmin.api.routes.section import DRY_RUN, IN_NAMESPACE, OBJECT, RouteSection, Topics, created, streamed
from dynamo_dynadmin.http.routes import JSON, Route, flag, number

_CHANGES = ("invalid", "not-found", "stale", "conflict", "managed-elsewhere", "owned-replicas")
_GRAPH, _REQUEST, _ADAPTER = (
    RouteSection(kind.collection, f"{IN_NAMESPACE}/{kind.collection}/{{name}}")
    for kind in (DEPLOYMENTS, REQUESTS, ADAPTERS)
)


def actions(acting: Actions) -> Iterator[Route]:
    """Routes that change a part of an object, and the points of a request."""
    graph, adapter = (partial(each, query=(DRY_RUN,)) for each in (_GRAPH, _ADAPTER))
    scale, restart, scale_adapter = ({JSON: name} for name in ("ScaleBody", "RestartBody", "AdapterScaleBody"))
    yield graph("POST /scale", "scaleDeployment", "Scale a component.", acting.scale, "Scaled", *_CHANGES, body=scale)
    yield graph(
        "POST /restart", "restartDeployment", "Restart the pods.", acting.restart, "Restarted", *_CHANGES, body=restart
    )
    yield adapter(
        "POST /scale", "scaleAdapter", "Scale it.", acting.scale_adapter, "Scaled", *_CHANGES, body=scale_adapter
    )
    yield _REQUEST(
        "GET /candidates",
        "listRequestCandidates",
        "Points of the Pareto front.",
        acting.candidates,
        "Candidates",
        "not-found",
    )
    yield _REQUEST(
        "POST /promote",
        "promoteRequest",
        "Deploy one of the points.",
        acting.promote,
        created("Dry run, or the request's graph was changed.", OBJECT),
        *("invalid", "not-found", "conflict", "already-exists", "key-reused", "stale"),
        query=(DRY_RUN,),
        body={JSON: "PromoteBody"},
        idempotent=True,
    )


def conversation(topics: Topics) -> Iterator[Route]:
    """Chats with the model of a graph, and the decisions about its replicas."""
    yield _GRAPH(
        "GET /chat",
        "listChatModels",
        "Which Service answers chats, and the models that it serves now. Needs `get` of services/proxy.",
        topics.chat.models,
        "ChatModels",
        *("not-found", "conflict"),
    )
    yield _GRAPH(
        "POST /chat",
        "chat",
        "The answer to a chat, with its times; as server-sent events `delta`, `end`, `failed`, `unauthorized`, `error`. "
        "Needs `create` of services/proxy.",
        topics.chat.chat,
        streamed("The answer.", {JSON: "ChatAnswer"}),
        *("invalid", "not-found", "conflict"),
        body={JSON: "ChatBody"},
    )
    limit = "Maximum number of decisions; in a stream, of existing decisions."
    yield _GRAPH(
        "GET /decisions",
        "listDecisions",
        "What planner and scaler decided about its replicas, and why; with `watch` as server-sent events `decision`, "
        "`synced`, `resync`, `unauthorized`, `error`.",
        topics.decisions.decisions,
        streamed("Decisions of the last seven days.", {JSON: "Decisions"}),
        "not-found",
        query=(
            number("limit", limit, least=1, most=MOST, default=DEFAULT_LIMIT),
            flag("watch", "Stream new decisions."),
        ),
        streams=True,
    )
    yield _GRAPH(
        "POST /replay",
        "replayDecisions",
        "The traffic that its decisions show, simulated with its PlannerConfig, unchanged and changed. Nothing "
        "in the cluster changes. Needs `get` of the ConfigMap with the PlannerConfig, and of the one with the profile.",
        topics.replaying.replay,
        "Replay",
        *("invalid", "not-found", "conflict"),
        body={JSON: "ReplayBody"},
    )
