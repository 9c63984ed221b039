"""Bodies and answers of the API, as the OpenAPI document describes them.

Objects of Kubernetes are described by their own schemas (`kubectl explain`), and not repeated here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from dynamo_shared.api.replica_limits import MAX_REPLICAS
from pydantic import BaseModel, ConfigDict, Field

from dynamo_dynadmin.api.schemas import BodySchema, KubernetesSchema, Schema

_Replicas = Annotated[int, Field(ge=0, le=MAX_REPLICAS, strict=True)]


class Metadata(KubernetesSchema):
    """metadata of an object."""

    name: str
    """Name."""
    namespace: str | None = None
    """Namespace."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - Kubernetes' word
    generation: int = 0
    creationTimestamp: str = ""  # noqa: N815


class KubernetesObject(KubernetesSchema):
    """An object as Kubernetes stores it, without managedFields."""

    apiVersion: str  # noqa: N815 - Kubernetes' word
    kind: str
    metadata: Metadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class BodyMetadata(KubernetesSchema):
    """metadata of an object to write."""

    name: str = ""
    """Name; in a replacement it may be omitted."""
    generateName: str = ""  # noqa: N815 - Kubernetes' word
    """Beginning of the name of a new object, instead of `name`."""
    namespace: str = ""
    """The namespace of the path, or omitted."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ObjectBody(KubernetesSchema):
    """An object to write."""

    apiVersion: str = ""  # noqa: N815 - Kubernetes' word
    """A served version of the collection's kind; if omitted, the stored version."""
    kind: str = ""
    """The collection's kind, or omitted."""
    metadata: BodyMetadata
    spec: dict[str, Any] = {}


class ListMetadata(Schema):
    """Metadata of a list."""

    position: str
    """Position of the collection's stream when the first page was read: every listed object is at least as new. Send it
    as Last-Event-ID to `watch=true`.
    """
    continue_: str | None = Field(default=None, alias="continue")
    """Send it as `continue` for the next page; absent on the last one."""
    remaining_item_count: int | None = None
    """Objects after this page."""


class ObjectList(BaseModel):
    """A page of a collection."""

    model_config = ConfigDict(use_attribute_docstrings=True)
    apiVersion: str  # noqa: N815 - Kubernetes' word
    kind: str
    metadata: ListMetadata
    items: list[KubernetesObject]


class ProblemEntry(Schema):
    """One reason of a problem."""

    pointer: str
    """JSON pointer into the sent body; `?name` for a parameter; empty for the whole body."""
    detail: str
    """What is wrong, and what is allowed."""
    source: str | None = None
    """Field of the refused object, as Kubernetes names it."""


class Problem(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)
    type: str
    """`urn:dynamo:problem:` and the kind of problem."""
    title: str
    status: int
    detail: str
    """What is wrong and what to do."""
    instance: str
    """`urn:uuid:` and the request's id."""
    errors: list[ProblemEntry] = []
    """Every reason."""


class Named(Schema):
    """Something with a name."""

    name: str


class Namespaces(Schema):
    """Namespaces in which the caller may list graph deployments."""

    items: list[Named]


class Condition(Schema):
    """A condition of an object."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str


class FieldWriter(Schema):
    """A writer of an object's desired state."""

    manager: str
    """Its field manager: `dynadmin/USER` for a change over this API."""
    time: str
    """Its last change."""
    fields: list[str]
    """The fields that it has set, such as `spec.components[Worker].replicas`; if they are many, where they are."""


class Status(Schema):
    """The state of an object."""

    name: str
    namespace: str
    ready: bool | None
    """null if the object has no such condition."""
    state: str
    message: str
    """Why it is not ready."""
    generation: int
    observed_generation: int
    up_to_date: bool
    """Whether the status belongs to the newest spec."""
    managed_by: str
    """Argo CD or Flux, if one of them manages the object; else empty."""
    changes: list[FieldWriter]
    """Who changed it, the last one first."""
    conditions: list[Condition]
    status: dict[str, Any]
    """The object's own status."""


class EventObject(Schema):
    """The object of an event."""

    kind: str
    name: str


class Event(Schema):
    """A Kubernetes Event."""

    id: str
    """The same for one Event, also when its count increases."""
    time: str
    type: str
    reason: str
    message: str
    count: int
    object: EventObject
    reporter: str


class Events(Schema):
    """Events, newest first."""

    items: list[Event]


class Pod(Schema):
    """A pod."""

    name: str
    component: str
    """Name of its component; empty if it has no such label."""
    phase: str
    ready: bool
    node: str
    ip: str
    gpus: int
    restarts: int
    containers: list[str]
    created: str
    message: str
    """Why it is not ready."""


class Pods(Schema):
    """Pods."""

    items: list[Pod]


class TreeNode(KubernetesSchema):
    """An object and what it owns."""

    apiVersion: str  # noqa: N815 - Kubernetes' word
    kind: str
    name: str
    children: list[TreeNode]
    uid: str = ""
    ready: bool | None = None
    """null if the object has no such condition."""
    state: str = ""
    message: str = ""
    """Why it is not ready."""
    node: str = ""
    """Node of a pod."""
    gpus: int = 0
    """GPUs of a pod."""
    count: int = 0
    """Number of such pods, if they do not exist yet."""


class Tree(Schema):
    """An object and all that it owns."""

    tree: TreeNode
    hidden: list[str]
    """Resources that the caller may not list, and that are omitted."""


class LogLine(Schema):
    """A line of a log."""

    time: str
    pod: str
    container: str
    component: str
    text: str


class LogLines(Schema):
    """Lines of all containers, oldest first."""

    items: list[LogLine]
    problems: list[str]
    """Containers whose log could not be read, with the reason."""


class ScaleBody(BodySchema):
    """Replicas of a component."""

    component: str
    replicas: _Replicas


class AdapterScaleBody(BodySchema):
    """Replicas of an adapter."""

    replicas: _Replicas


class Scaled(BaseModel):
    """What was scaled."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)
    component: str | None = None
    """The component, if its number is the graph's own."""
    adapter: str | None = None
    """The adapter, if the number was written to one."""
    replicas: int
    via: Literal["graph", "adapter"]
    """The target of the write."""
    warnings: list[str]


class RestartBody(BodySchema):
    """A restart; both fields are optional."""

    id: str | None = None
    """A new text restarts the graph; a missing id is generated."""
    strategy: dict[str, Any] | None = None
    """Like spec.restart.strategy of a graph."""


class Restarted(Schema):
    """The requested restart."""

    restart: dict[str, Any] | None
    warnings: list[str]


class Candidate(Schema):
    """A point of the Pareto front."""

    point: int
    """Its number, for `promote`."""
    config: dict[str, Any]
    """The graph."""
    figures: dict[str, Any]
    """Its expected performance."""
    selected: bool
    """Whether profiling chose it."""


class Candidates(Schema):
    """Points of the Pareto front of a request."""

    phase: str
    source: str
    items: list[Candidate]


class ChatMessage(BodySchema):
    """A message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str = Field(max_length=1 << 18)


class ChatBody(BodySchema):
    """A chat so far; the answer is the next message."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=512)
    model: str | None = Field(default=None, min_length=1, max_length=512)
    """Name with which the frontend serves the model; optional if it serves only one."""
    max_tokens: int | None = Field(default=None, ge=1, le=1 << 20)
    """Maximum tokens of the answer."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = Field(default=None, ge=0, le=2**63 - 1)
    parameters: dict[str, Any] = {}
    """More parameters of the frontend's /v1/chat/completions, passed on unchanged; not `stream` and `n`."""


class ChatAnswer(Schema):
    """The answer of a chat, with times that this service measured from the start of the request."""

    text: str
    reasoning: str
    model: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int
    ttft_ms: float | None
    """Until the first token."""
    itl_ms: float | None
    """Mean time between tokens."""
    itl_p99_ms: float | None = Field(alias="itlP99Ms")
    """99th percentile of the time between pieces of text."""
    total_ms: float


class ChatModels(Schema):
    """The Service and models that answer the chats of a graph."""

    service: str
    models: list[str]


class Decision(Schema):
    """A decision of the planner, or the scaler's reaction to it."""

    time: str
    """RFC 3339."""
    event: str
    """Planner: planned, plan-held. Scaler: scale-applied, scale-held, scale-refused, scale-advised."""
    reason: str
    message: str
    policy: str
    advisory: bool
    replicas: dict[str, int]
    """Desired replicas by pool; from the scaler the allowed replicas by component. Empty if nothing changes."""
    current: dict[str, int]
    inputs: dict[str, float]
    """Traffic and other observations."""
    predictions: dict[str, float]
    """Predictions: traffic, attainment."""
    missing: dict[str, str]
    """Missing inputs, with reasons."""
    alternatives: list[dict[str, Any]]
    """Rejected alternatives, with reasons."""
    budgets: list[dict[str, Any]]
    """GPU budgets that the scaler applied to the replicas, and which of them limited the replicas."""
    command: str
    """Id of the planner's command to the scaler; empty if none was sent."""


class Decisions(Schema):
    """Decisions about a graph's replicas, oldest first."""

    items: list[Decision]
    truncated: bool
    """Whether older decisions exist."""


class PromoteBody(BodySchema):
    """The point to deploy."""

    point: int = Field(ge=1, strict=True)


class Me(Schema):
    """The caller's identity."""

    user: str
    groups: list[str]
    expires: float | None
    """When the token or session ends, Unix time."""
    session: bool


class Rights(Schema):
    """The caller's rights in a namespace."""

    namespace: str
    collections: dict[str, dict[str, bool]]
    """By collection and verb."""
    chat: bool
    """Chats with any Service of the namespace; a role may allow only some Services."""
    events: bool
    logs: bool
    pods: bool
    nodes: bool


class TokenBody(Schema):
    """A token for a session."""

    token: str = Field(min_length=1, max_length=16384)


class SessionAnswer(Schema):
    """A session."""

    user: str
    csrf_token: str
    """Send it as X-CSRF-Token with every change."""
    expires: float


class SessionWays(Schema):
    """Ways to start a session."""

    token: bool
    """Whether a session can start with a token, by POST."""
    login: str | None
    """Path of the login at the issuer; null if no issuer is configured."""
