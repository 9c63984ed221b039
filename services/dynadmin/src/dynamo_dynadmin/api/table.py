"""The route table: every operation of the API, in the order of the document."""

from dataclasses import dataclass
from typing import Any

from dynamo_dynadmin.api.acting import Actions
from dynamo_dynadmin.api.chat import Chat
from dynamo_dynadmin.api.cluster import Cluster
from dynamo_dynadmin.api.decisions import DecisionReader
from dynamo_dynadmin.api.deploying import IntentDeployer
from dynamo_dynadmin.api.details import Details
from dynamo_dynadmin.api.estimating import Estimating
from dynamo_dynadmin.api.events import EventReader
from dynamo_dynadmin.api.kinds import KINDS
from dynamo_dynadmin.api.logs import Logs
from dynamo_dynadmin.api.reading import CollectionReader
from dynamo_dynadmin.api.replaying import Replaying
from dynamo_dynadmin.api.routes.about import about
from dynamo_dynadmin.api.routes.actions import actions, conversation
from dynamo_dynadmin.api.routes.collection import collection
from dynamo_dynadmin.api.routes.deploy import deploy
from dynamo_dynadmin.api.routes.session import session
from dynamo_dynadmin.api.sessions import SessionPages
from dynamo_dynadmin.api.writing import Writing
from dynamo_dynadmin.http.routes import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The implementations of the operations."""

    reading: CollectionReader
    writing: Writing
    details: Details
    events: EventReader
    logs: Logs
    chat: Chat
    decisions: DecisionReader
    acting: Actions
    cluster: Cluster
    deploying: IntentDeployer
    estimating: Estimating
    replaying: Replaying
    sessions: SessionPages


def table(topics: Topics, document: bytes) -> tuple[Route, ...]:
    """All routes; `document` is the OpenAPI document, which is generated from them."""
    of_kinds = (
        collection(
            kind,
            reading=topics.reading,
            writing=topics.writing,
            details=topics.details,
            events=topics.events,
            logs=topics.logs,
        )
        for kind in KINDS
    )
    return (
        *about(topics.cluster, document),
        *session(topics.sessions),
        *(route for routes in of_kinds for route in routes),
        *actions(topics.acting),
        *conversation(topics.chat, topics.decisions, topics.replaying),
        *deploy(topics.deploying, topics.estimating),
    )


def described() -> tuple[Route, ...]:
    """The table without implementations, for documents."""
    nothing: Any = _NoImplementation()
    return table(nothing, b"")


class _NoImplementation:
    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: Any) -> Any:
        raise NotImplementedError
