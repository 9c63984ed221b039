"""Rendering: the Kubernetes objects of a graph or a component. Pure: data in, data out, no clock, no server.

`graph` and `component` call everything else; `config` and `context` define their inputs.

| package | what it renders |
|---|---|
| `pod` | pods: containers, variables, volumes, probes, the user's template |
| `backends` | flags of the inference engines |
| `workloads` | objects that run pods: Deployments, LeaderWorkerSets, PodCliqueSets |
| `network` | Services, ingress, gateways, the endpoint picker |
| `access` | accounts, roles, pull secrets |
| `sharing` | GPU memory that engines share, engines that fail over |
| `checkpoint` | checkpoints: Jobs, storage, pods that start from one |
| `legacy` | what only v1alpha1 can express |
"""

from dynamo_pod_builder.render.component import component_children
from dynamo_pod_builder.render.config import (
    CheckpointDefaults,
    GatewayDefaults,
    IngressDefaults,
    Mesh,
    ObservedComponent,
    ObservedGraph,
    RenderConfig,
)
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.features import needs_ssh_keys
from dynamo_pod_builder.render.graph import children_as_given, graph_children, worker_hash
from dynamo_pod_builder.render.hashing import canonical
from dynamo_pod_builder.render.metadata import MANAGED_BY
from dynamo_pod_builder.render.sharing.claims import claim_templates
from dynamo_pod_builder.render.typed import typed_component
from dynamo_pod_builder.render.workloads.kai import DEFAULT_QUEUE
from dynamo_pod_builder.render.workloads.leader_worker_set import addressed

__all__ = [
    "DEFAULT_QUEUE",
    "MANAGED_BY",
    "CheckpointDefaults",
    "GatewayDefaults",
    "IngressDefaults",
    "Mesh",
    "ObservedComponent",
    "ObservedGraph",
    "RenderConfig",
    "RenderError",
    "addressed",
    "canonical",
    "children_as_given",
    "claim_templates",
    "component_children",
    "graph_children",
    "needs_ssh_keys",
    "typed_component",
    "worker_hash",
]
