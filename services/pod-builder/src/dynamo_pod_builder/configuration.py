"""From settings to what rendering needs to know of them."""

from __future__ import annotations

from dynamo_shared.runtime import Settings

from dynamo_pod_builder.render import RenderConfig


def render_config(settings: Settings) -> RenderConfig:
    """The part of the settings that shows in objects."""
    return RenderConfig(
        discovery_backend=settings.discovery.backend.value,
        nats_address=settings.infrastructure.nats_address,
        etcd_address=settings.infrastructure.etcd_address,
        model_express_url=settings.infrastructure.model_express_url,
        prometheus_endpoint=settings.infrastructure.prometheus_endpoint,
        planner_cluster_role=settings.rbac.planner_cluster_role_name,
        epp_cluster_role=settings.rbac.epp_cluster_role_name,
        operator_version=settings.platform.version,
        restricted_namespace=settings.namespace.restricted,
    )
