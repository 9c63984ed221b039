"""The route table: every operation of the API, in the order of the document."""

from typing import Any

from dynamo_dynadmin.api.kinds import KINDS
from dynamo_dynadmin.api.routes.about import about
from dynamo_dynadmin.api.routes.actions import actions, conversation
from dynamo_dynadmin.api.routes.collection import collection
from dynamo_dynadmin.api.routes.deploy import deploy
from dynamo_dynadmin.api.routes.section import Topics
from dynamo_dynadmin.api.routes.session import session
from dynamo_dynadmin.http.routes import Route


def table(topics: Topics, document: bytes) -> tuple[Route, ...]:
    """All routes; `document` is the OpenAPI document, which is generated from them."""
    return (
        *about(topics, document),
        *session(topics.sessions),
        *(route for kind in KINDS for route in collection(kind, topics)),
        *actions(topics.acting),
        *conversation(topics),
        *deploy(topics),
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
