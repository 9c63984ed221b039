"""Rendering: what a graph or a component becomes in Kubernetes. Pure: data in, data out, no clock, no server."""

from __future__ import annotations

from dynamo_pod_builder.render.claims import claim_templates
from dynamo_pod_builder.render.component import component_children, is_shared
from dynamo_pod_builder.render.config import (
    CheckpointDefaults,
    GatewayDefaults,
    IngressDefaults,
    Mesh,
    ObservedComponent,
    ObservedGraph,
    RenderConfig,
)
from dynamo_pod_builder.render.errors import NotDeployable, RenderError
from dynamo_pod_builder.render.features import needs_ssh_keys
from dynamo_pod_builder.render.graph import graph_children, worker_hash
from dynamo_pod_builder.render.hashing import canonical
from dynamo_pod_builder.render.metadata import MANAGED_BY

__all__ = [
    "MANAGED_BY",
    "CheckpointDefaults",
    "GatewayDefaults",
    "IngressDefaults",
    "Mesh",
    "NotDeployable",
    "ObservedComponent",
    "ObservedGraph",
    "RenderConfig",
    "RenderError",
    "canonical",
    "claim_templates",
    "component_children",
    "graph_children",
    "is_shared",
    "needs_ssh_keys",
    "worker_hash",
]
