"""Common properties of the routes of one topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_dynadmin.api.actions import Actions
from dynamo_dynadmin.api.chat import Chat
from dynamo_dynadmin.api.cluster import Cluster
from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.decisions import DecisionReader
from dynamo_dynadmin.api.details import Details
from dynamo_dynadmin.api.estimates import Estimates
from dynamo_dynadmin.api.events import EventReader
from dynamo_dynadmin.api.intent_deployer import IntentDeployer
from dynamo_dynadmin.api.logs import Logs
from dynamo_dynadmin.api.object_writer import ObjectWriter
from dynamo_dynadmin.api.replays import TrafficReplays
from dynamo_dynadmin.api.selectors import MOST_REQUIREMENTS
from dynamo_dynadmin.api.sessions import SessionPages
from dynamo_dynadmin.http.routes import JSON, SSE, YAML, Handler, Parameter, ResponseSpec, Route, flag

PREFIX = "/api/v1"
IN_NAMESPACE = f"{PREFIX}/namespaces/{{namespace}}"

DRY_RUN = flag("dryRun", "Let the API server and admission check it, and store nothing.")
SELECTOR = Parameter(
    "labelSelector", f"Labels, as Kubernetes writes selectors: at most {MOST_REQUIREMENTS} requirements."
)
OBJECT = {JSON: "KubernetesObject"}
OBJECT_OR_YAML = {**OBJECT, YAML: "KubernetesObject"}
OBJECT_BODY = {JSON: "ObjectBody", YAML: "ObjectBody"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The implementations of the operations."""

    reading: CollectionReader
    writing: ObjectWriter
    details: Details
    events: EventReader
    logs: Logs
    chat: Chat
    decisions: DecisionReader
    acting: Actions
    cluster: Cluster
    deploying: IntentDeployer
    estimating: Estimates
    replaying: TrafficReplays
    sessions: SessionPages


@dataclass(frozen=True, slots=True)
class RouteSection:
    """Routes of one tag, below one path."""

    tag: str
    path: str = PREFIX

    def __call__(
        self,
        target: str,
        operation: str,
        summary: str,
        handle: Handler,
        answers: str | Mapping[int, ResponseSpec],
        *problems: str,
        **more: Any,
    ) -> Route:
        """The route of a method and a path (`GET /name`); `answers` may be the name of the only answer's schema."""
        method, _, path = target.partition(" ")
        if isinstance(answers, str):
            answers = {200: ResponseSpec(summary if method == "GET" else "Done.", {JSON: answers})}
        return Route(
            method=method,
            path=self.path + path,
            operation=operation,
            summary=summary,
            tag=self.tag,
            handle=handle,
            answers=answers,
            problems=problems,
            **more,
        )


def created(otherwise: str, content: Mapping[str, str]) -> Mapping[int, ResponseSpec]:
    """The answers of a route that creates; `otherwise` describes the answer if the object already existed or is not
    stored.
    """
    return {
        201: ResponseSpec("Created.", content, ("ETag", "Location")),
        200: ResponseSpec(otherwise, content, ("ETag", "Location", "Idempotency-Replayed")),
    }


def streamed(description: str, content: Mapping[str, str]) -> Mapping[int, ResponseSpec]:
    """The answer of a route that can also stream the same content as server-sent events."""
    return {200: ResponseSpec(description, {**content, SSE: ""})}
