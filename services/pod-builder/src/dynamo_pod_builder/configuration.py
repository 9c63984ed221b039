"""Builds the configuration of rendering from the settings."""

import os
from collections.abc import Callable, Iterable, Mapping

from dynamo_shared.api import resources
from dynamo_shared.api.registry import env
from dynamo_shared.api.registry.env import DYN_OPERATOR_ALLOW_GMS_SNAPSHOT
from dynamo_shared.api.resources import Resource
from dynamo_shared.runtime import Settings, workload_env
from dynamo_shared.runtime.settings.platform import AddedResources

from dynamo_pod_builder.render import CheckpointDefaults, GatewayDefaults, IngressDefaults, Mesh, RenderConfig
from dynamo_pod_builder.render.config import SSH_SECRET, AddedContainer

ISTIO = "istio"
_TRUE = frozenset({"1", "t", "true"})


def render_config(
    settings: Settings,
    is_served: Callable[[Resource], bool],
    environ: Mapping[str, str] = os.environ,
    *,
    kai_queues: Iterable[str] = (),
) -> RenderConfig:
    """The settings that affect objects, and the optional APIs that the cluster serves."""
    orchestrators = settings.orchestrators
    kai = orchestrators.kai_scheduler.enabled is not False and is_served(resources.KAI_QUEUES)
    return RenderConfig(
        discovery_backend=settings.discovery.backend.value,
        infrastructure=(*workload_env.addresses(settings.infrastructure).items(), *_transport_tls(settings)),
        graph_env=tuple(settings.platform.graph_env.items()),
        planner_cluster_role=settings.rbac.planner_cluster_role_name,
        epp_cluster_role=settings.rbac.epp_cluster_role_name,
        operator_version=settings.platform.version,
        restricted_namespace=settings.namespace.restricted,
        ssh_secret=settings.mpi.ssh_secret_name or SSH_SECRET,
        init_container=_added(settings.platform.added_containers.init),
        memory_server=_added(settings.platform.added_containers.gpu_memory_server),
        ingress=IngressDefaults(
            class_name=settings.ingress.controller_class_name,
            virtual_service_gateway=settings.ingress.virtual_service_gateway,
            tls_secret=settings.ingress.controller_tls_secret_name,
            host_suffix=settings.ingress.host_suffix,
        ),
        gateway=GatewayDefaults(
            settings.platform.gateway.name, settings.platform.gateway.namespace, routes=is_served(resources.HTTP_ROUTES)
        ),
        mesh=Mesh(
            destination_rules=settings.service_mesh.provider == ISTIO
            and settings.service_mesh.enabled is not False
            and is_served(resources.DESTINATION_RULES),
            tls_mode=settings.service_mesh.istio.tls_mode,
            insecure_skip_verify=settings.service_mesh.istio.insecure_skip_verify,
            client_certificate=settings.service_mesh.istio.client_certificate,
            private_key=settings.service_mesh.istio.private_key,
            ca_certificates=settings.service_mesh.istio.ca_certificates,
        ),
        checkpoints=_checkpoints(settings, environ, is_served),
        kai_queues=frozenset(kai_queues) if kai else None,
        volcano=orchestrators.volcano_scheduler.enabled is not False,
        virtual_services=is_served(resources.VIRTUAL_SERVICES),
        device_claims=settings.dra.enabled is not False and is_served(resources.RESOURCE_CLAIM_TEMPLATES),
        inference_pools=is_served(resources.INFERENCE_POOLS),
        leader_worker_sets=orchestrators.lws.enabled is not False and is_served(resources.LEADER_WORKER_SETS),
        grove=orchestrators.grove.enabled is not False and is_served(resources.POD_CLIQUE_SETS),
        grove_termination_delay=orchestrators.grove.termination_delay,
    )


def _added(given: AddedResources) -> AddedContainer:
    return AddedContainer(tuple(given.requests.items()), tuple(given.limits.items()))


def _transport_tls(settings: Settings) -> tuple[tuple[str, str], ...]:
    given = settings.infrastructure
    variables = (
        (env.NATS_TLS_CA_CERT_PATH, given.nats_tls_ca_path),
        (env.NATS_TLS_CLIENT_CERT_PATH, given.nats_tls_client_cert_path),
        (env.NATS_TLS_CLIENT_KEY_PATH, given.nats_tls_client_key_path),
        (env.DYN_TCP_TLS_CERT_PATH, given.tcp_tls_cert_path),
        (env.DYN_TCP_TLS_KEY_PATH, given.tcp_tls_key_path),
        (env.DYN_TCP_TLS_CA_CERT_PATH, given.tcp_tls_ca_path),
        (env.DYN_TCP_TLS_CLIENT_CERT_PATH, given.tcp_tls_client_cert_path),
        (env.DYN_TCP_TLS_CLIENT_KEY_PATH, given.tcp_tls_client_key_path),
        (env.DYN_TCP_TLS_CLIENT_CA_CERT_PATH, given.tcp_tls_client_ca_path),
        (env.DYN_TCP_TLS_SERVER_NAME, given.tcp_tls_server_name),
    )
    return tuple((name, value) for name, value in variables if value)


def _checkpoints(
    settings: Settings, environ: Mapping[str, str], is_served: Callable[[Resource], bool]
) -> CheckpointDefaults:
    checkpoint = settings.checkpoint
    claim = checkpoint.storage.pvc
    configured = checkpoint.storage.type == "pvc"
    return CheckpointDefaults(
        enabled=checkpoint.enabled,
        profile=checkpoint.seccomp.localhost,
        claim=claim.pvc_name if configured else "",
        base_path=claim.base_path if configured else "",
        create=claim.create,
        size=claim.size,
        storage_class=claim.storage_class_name,
        access_mode=claim.access_mode,
        gpu_memory=environ.get(DYN_OPERATOR_ALLOW_GMS_SNAPSHOT, "").lower() in _TRUE,
        snapshots=is_served(resources.SNAPSHOT_JOBS) and is_served(resources.POD_SNAPSHOTS),
    )
