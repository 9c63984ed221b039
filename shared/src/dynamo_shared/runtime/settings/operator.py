"""The sections that the reference operator's configuration file has: same names, types, defaults and bounds.

Where a default differs it is because the reference's chart always fills the field in and a user without a chart
cannot: the roles of `rbac` and the secret of `mpi` may stay empty here, and what needs them says so.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import PurePosixPath
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from dynamo_shared.runtime.settings.base import AutoBool, Duration, LogLevel, Port, Section


class MetricsServerSettings(Section):
    """Where /metrics answers."""

    bind_address: str = "0.0.0.0"  # noqa: S104 - the reference's default; a pod is scraped from outside
    """Address to listen on."""
    port: Port = 8080
    """Port to listen on; 0 lets the system choose."""
    secure: bool = True
    """Serve with TLS, with the certificate of `certDir`. Without one, /metrics is served as plain HTTP and on the
    loopback address only: nothing leaves the machine in clear that was to be encrypted. Set `secure: false` to serve
    plain HTTP on `bindAddress`."""
    cert_dir: str = ""
    """Folder with `tls.crt` and `tls.key` (re-read when they change)."""
    client_ca_file: str = Field(default="", alias="clientCAFile")
    """Certificates that clients must be signed by; empty asks clients for none."""


class HealthProbeSettings(Section):
    """Where /healthz and /readyz answer."""

    bind_address: str = "0.0.0.0"  # noqa: S104 - probes come from the kubelet
    """Address to listen on."""
    port: Port = 8081
    """Port to listen on; 0 lets the system choose."""


class WebhookServerSettings(Section):
    """Where admission webhooks answer, and where their certificate comes from."""

    host: str = "0.0.0.0"  # noqa: S104 - called by the API server
    """Address to listen on."""
    port: Port = 9443
    """Port to listen on."""
    cert_dir: str = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - the reference's default
    """Folder with `tls.crt` and `tls.key`."""
    cert_provision_mode: Literal["auto", "manual"] = "auto"
    """Whether certificates are made and rotated here, or come from elsewhere (cert-manager)."""
    secret_name: str = "webhook-server-cert"  # noqa: S105 - a name
    """Secret that holds the certificate."""
    service_name: str = ""
    """Service that the API server calls; its names go into the certificate."""


class ServerSettings(Section):
    """The HTTP servers of a process."""

    metrics: MetricsServerSettings = MetricsServerSettings()
    health_probe: HealthProbeSettings = HealthProbeSettings()
    webhook: WebhookServerSettings = WebhookServerSettings()


class LeaderElectionSettings(Section):
    """Read so that a reference configuration stays valid: replicas here share work by etcd leases (`platform.etcd`)."""

    enabled: bool = False
    """Whether one replica is to be elected."""
    id: str = ""
    """Name of the election; required when enabled."""
    namespace: str = ""
    """Namespace of the reference's Lease object."""

    @model_validator(mode="after")
    def _id_when_enabled(self) -> Self:
        if self.enabled and not self.id:
            raise ValueError("id: must be set when enabled is true, for example dynamo.nvidia.com")
        return self


class NamespaceScopeSettings(Section):
    """The Lease by which a namespace-restricted operator tells cluster-wide ones to leave its namespace alone."""

    lease_duration: Duration = timedelta(seconds=30)
    """After this time without renewal the namespace is free again."""
    lease_renew_interval: Duration = timedelta(seconds=10)
    """Time between renewals; shorter than `leaseDuration`."""

    @model_validator(mode="after")
    def _renewed_in_time(self) -> Self:
        if self.lease_renew_interval <= timedelta(0):
            raise ValueError("leaseRenewInterval: must be positive")
        if self.lease_renew_interval >= self.lease_duration:
            raise ValueError("leaseRenewInterval: must be shorter than leaseDuration")
        return self


class NamespaceSettings(Section):
    """Which namespaces are worked on."""

    restricted: str = ""
    """Work in this namespace only; empty works in all of the cluster."""
    scope: NamespaceScopeSettings = NamespaceScopeSettings()


class GroveSettings(Section):
    """Grove PodCliqueSets as the way to run graphs."""

    enabled: AutoBool = None
    """null: whether the cluster serves grove.io."""
    termination_delay: Duration = timedelta(minutes=15)
    """How long a gang may be below its minimum before it is terminated; not negative."""

    @field_validator("termination_delay")
    @classmethod
    def _not_negative(cls, value: timedelta) -> timedelta:
        if value < timedelta(0):
            raise ValueError("must not be negative")
        return value


class LwsSettings(Section):
    """LeaderWorkerSets for components on several nodes."""

    enabled: AutoBool = None
    """null: whether the cluster serves both leaderworkerset.x-k8s.io and scheduling.volcano.sh."""


class KaiSchedulerSettings(Section):
    """The KAI scheduler for Grove pods."""

    enabled: AutoBool = None
    """null: whether the cluster serves scheduling.run.ai."""


class OrchestratorSettings(Section):
    """What runs components besides Deployments."""

    grove: GroveSettings = GroveSettings()
    lws: LwsSettings = LwsSettings()
    kai_scheduler: KaiSchedulerSettings = KaiSchedulerSettings()


class DraSettings(Section):
    """Dynamic resource allocation."""

    enabled: AutoBool = None
    """null: whether the cluster serves resource.k8s.io/v1."""


class InfrastructureSettings(Section):
    """Addresses that workloads are given. They are not the platform's own servers (see `platform.nats`)."""

    nats_address: str = ""
    """NATS_SERVER of workloads; that variable alone makes them connect."""
    etcd_address: str = ""
    """ETCD_ENDPOINTS of workloads."""
    model_express_url: str = Field(default="", alias="modelExpressURL")
    """MODEL_EXPRESS_URL of workloads."""
    prometheus_endpoint: str = ""
    """PROMETHEUS_ENDPOINT of planners."""


class IngressSettings(Section):
    """Ingress of frontends."""

    virtual_service_gateway: str = ""
    """Istio gateway; set, frontends get a VirtualService."""
    controller_class_name: str = ""
    """Ingress class; set, frontends get an Ingress."""
    controller_tls_secret_name: str = Field(default="", alias="controllerTLSSecretName")
    """Secret with the certificate of the Ingress."""
    host_suffix: str = ""
    """What follows the graph's name in the host; empty means `local`."""


class IstioSettings(Section):
    """TLS from the mesh to endpoint pickers."""

    tls_mode: str = "SIMPLE"
    """Mode of the DestinationRule."""
    insecure_skip_verify: bool = True
    """Accept any certificate of the endpoint picker."""


class ServiceMeshSettings(Section):
    """The service mesh."""

    provider: str = ""
    """Empty or `istio`."""
    istio: IstioSettings = IstioSettings()


class RbacSettings(Section):
    """ClusterRoles that service accounts of graphs are bound to. Required where a graph needs one, not before."""

    planner_cluster_role_name: str = ""
    """For planners."""
    dgdr_profiling_cluster_role_name: str = ""
    """For profiling jobs."""
    epp_cluster_role_name: str = ""
    """For endpoint pickers."""


class MpiSettings(Section):
    """The SSH key of multi-node TensorRT-LLM. Required where a graph needs it, not before."""

    ssh_secret_name: str = ""
    """Secret with the key."""
    ssh_secret_namespace: str = ""
    """Namespace it is copied from."""

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if bool(self.ssh_secret_name) != bool(self.ssh_secret_namespace):
            raise ValueError("sshSecretName and sshSecretNamespace: set both or none")
        return self


class SeccompSettings(Section):
    """Seccomp profile of checkpoint jobs."""

    disabled: bool = False
    """Run them without a profile."""
    profile: str = "profiles/block-iouring.json"
    """Profile on the node (type Localhost)."""


class CheckpointPvcSettings(Section):
    """Checkpoints on a persistent volume claim."""

    pvc_name: str = ""
    """Name of the claim."""
    base_path: str = ""
    """Absolute folder on the volume."""
    create: bool = False
    """Create the claim where it is missing."""
    size: str = ""
    """Size of a claim that is created; required with `create`."""
    storage_class_name: str = ""
    """Storage class of a claim that is created; empty is the cluster's default."""
    access_mode: Literal["ReadWriteOnce", "ReadWriteMany"] = "ReadWriteMany"
    """Access mode of a claim that is created."""

    @field_validator("base_path")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if value and not PurePosixPath(value).is_absolute():
            raise ValueError("must be an absolute path")
        return value

    @model_validator(mode="after")
    def _size_to_create(self) -> Self:
        if self.create and not self.size:
            raise ValueError("size: must be set when create is true, for example 100Gi")
        return self


class CheckpointObjectStoreSettings(Section):
    """Read so that a reference configuration stays valid; the reference ignores object stores as well."""

    uri: str = ""
    """Where checkpoints are."""
    credentials_secret_ref: str = ""
    """Secret with the credentials."""


class CheckpointStorageSettings(Section):
    """Where checkpoints are kept."""

    type: Literal["", "pvc", "s3", "oci"] = ""
    """Only `pvc` is used; empty finds the claim of the snapshot agent."""
    pvc: CheckpointPvcSettings = CheckpointPvcSettings()
    s3: CheckpointObjectStoreSettings = CheckpointObjectStoreSettings()
    oci: CheckpointObjectStoreSettings = CheckpointObjectStoreSettings()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "pvc":
            wanting = [name for name, value in (("pvcName", self.pvc.pvc_name), ("basePath", self.pvc.base_path)) if not value]
            if wanting:
                raise ValueError("; ".join(f"pvc.{name}: must be set when type is pvc" for name in wanting))
        return self


class CheckpointSettings(Section):
    """Snapshots of workers (experimental)."""

    enabled: bool = False
    """Restore workers from checkpoints."""
    seccomp: SeccompSettings = SeccompSettings()
    storage: CheckpointStorageSettings = CheckpointStorageSettings()


class DiscoverySettings(Section):
    """How workers find each other."""

    backend: Literal["kubernetes", "etcd"] = "kubernetes"
    """Discovery of graphs that do not say otherwise."""


class GpuSettings(Section):
    """GPUs of the cluster."""

    discovery_enabled: bool = True
    """Find out from nodes which GPUs there are, for deployment requests that do not say."""


class LoggingSettings(Section):
    """Log lines, written to stderr."""

    level: LogLevel = "info"
    """Least severe level that is written."""
    format: Literal["json", "text", "console"] = "json"
    """`json` for machines; `text` or `console` for people."""


class SecuritySettings(Section):
    """Security of the HTTP servers."""

    enable_http2: bool = Field(default=False, alias="enableHTTP2")
    """Read so that a reference configuration stays valid: the servers here speak HTTP/1.1 only."""


class OperatorSettings(Section):
    """All sections of the reference."""

    server: ServerSettings = ServerSettings()
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    namespace: NamespaceSettings = NamespaceSettings()
    orchestrators: OrchestratorSettings = OrchestratorSettings()
    dra: DraSettings = DraSettings()
    infrastructure: InfrastructureSettings = InfrastructureSettings()
    ingress: IngressSettings = IngressSettings()
    service_mesh: ServiceMeshSettings = ServiceMeshSettings()
    rbac: RbacSettings = RbacSettings()
    mpi: MpiSettings = MpiSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    gpu: GpuSettings = GpuSettings()
    logging: LoggingSettings = LoggingSettings()
    security: SecuritySettings = SecuritySettings()
