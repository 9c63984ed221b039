"""Answers about deployments in the REST API: intents, estimates, and the GPUs for them."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from dynamo_dynadmin.api.models import KubernetesObject, TreeNode
from dynamo_dynadmin.api.schemas import Schema


class Unexpressed(Schema):
    """A field of the intent that has no place in the object."""

    pointer: str
    detail: str


class DefaultedField(Schema):
    """A field of the object that the intent does not name."""

    path: str
    value: Any
    why: str


class NodeGpus(Schema):
    """A node with GPUs."""

    name: str
    product: str
    """Kind of GPU; empty if unknown."""
    total: int
    free: int
    schedulable: bool
    taints: list[str]
    """As `key=value:effect`."""


class PlacedPods(Schema):
    """Pods that a node has room for."""

    component: str
    node: str
    pods: int
    gpus: int
    """Of all these pods."""


class WaitingPods(Schema):
    """Pods that no node has room for."""

    component: str
    pods: int
    gpus: int
    """Of all these pods."""
    why: str
    free: list[str]
    """Nodes that match, and whose GPUs would suffice if they were free."""


class GpuFit(Schema):
    """Whether the GPUs that a graph needs are free now."""

    fits: bool
    exact: bool
    """Whether all GPUs that are in use, and all that are needed, were counted."""
    needed: int
    free: int
    placed: list[PlacedPods]
    missing: list[WaitingPods]
    claims: list[str]
    """Names of the pods' resource claims."""
    uncounted: list[str]
    """Claims whose GPUs are unknown: `needed` does not include them."""
    nodes: list[NodeGpus]


class ProductGpus(Schema):
    """GPUs of one kind."""

    product: str
    nodes: int
    total: int
    free: int


class ClusterGpus(Schema):
    """The GPUs of the cluster."""

    exact: bool
    """Whether all GPUs that are in use were counted."""
    kinds: list[ProductGpus]
    nodes: list[NodeGpus]


class Deployed(Schema):
    """The result of an intent."""

    manifest: KubernetesObject
    """The object that is sent."""
    yaml: str
    """The same, as a manifest."""
    dry_run: str | None
    defaulted: list[DefaultedField]
    server_defaulted: list[str] = []
    """Paths that the API server and admission added."""
    unexpressed: list[Unexpressed]
    origins: dict[str, str]
    """The field of the intent from which a field came, by JSON pointer into the manifest."""
    warnings: list[str]
    tree: TreeNode | None
    """The objects that would be created, level by level; null if they are not known (a request)."""
    gpus: GpuFit | None
    """Whether the GPUs are free now; null if the caller may not list nodes, or no GPUs are needed yet."""
    object: KubernetesObject | None
    """The object as stored, or as it would be stored; null if the intent is only translated."""


class Capabilities(BaseModel):
    """What the cluster can do."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)
    apiVersions: dict[str, str]  # noqa: N815 - camelCase on the wire
    served: list[str]
    platformVersion: str  # noqa: N815
    gpuSkus: list[str]  # noqa: N815
    """Kinds of GPU that an objective may name."""
    orchestrators: dict[str, bool]
    gpus: ClusterGpus | None
    """null if the caller may not list nodes."""


class EstimateFigures(BaseModel):
    """The expected performance of a deployment; milliseconds, tokens, requests and seconds. null if unknown."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)
    backend: str
    serving: str
    """agg or disagg."""
    gpus: int
    ttft: float | None
    itl: float | None
    meetsSLA: bool | None = None  # noqa: N815 - names of the request's status
    """Whether it meets the target times."""
    requestLatency: float | None = None  # noqa: N815
    concurrency: float | None = None
    requestsPerSecond: float | None = None  # noqa: N815
    tokensPerSecond: float | None = None  # noqa: N815
    tokensPerSecondPerGPU: float | None = None  # noqa: N815
    tokensPerSecondPerUser: float | None = None  # noqa: N815
    parallelism: dict[str, dict[str, Any]] | None = None
    """Engines by role: agg, or prefill and decode."""


class Estimate(Schema):
    """The expected performance of an intent."""

    selected: EstimateFigures
    """The deployment that fits the objective best."""
    pareto: list[EstimateFigures]
    """Deployments to which no other deployment is better in every respect."""
    notes: list[str]
    source: str
    """aiconfigurator, or naive: chosen by GPU memory only."""
    seconds: float
    cached: bool
