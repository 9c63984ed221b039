"""The fields of the reference's OperatorConfiguration (operator behaviour, section 10)."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator
from pydantic.alias_generators import to_camel

from dynamo_shared.api.registry import ports
from dynamo_shared.runtime.settings.addresses import LISTENS_ON
from dynamo_shared.runtime.settings.base import Duration, PortNumber, Section
from dynamo_shared.runtime.settings.older_names import OLDER_NAMES
from dynamo_shared.runtime.settings.platform import Platform

API_VERSION: Literal["operator.config.dynamo.nvidia.com/v1alpha1"] = "operator.config.dynamo.nvidia.com/v1alpha1"
KIND: Literal["OperatorConfiguration"] = "OperatorConfiguration"


class MetricsServer(Section):
    """The server of /metrics."""

    enabled: bool = Field(True, description="Whether metrics are served.")
    bind_address: str = Field("0.0.0.0", description=LISTENS_ON)  # noqa: S104 - scraped from other pods
    port: PortNumber = Field(ports.PLATFORM_METRICS.number, description="Port; 0: a free port.")
    secure: bool = Field(
        True,
        description="Whether /metrics needs TLS and a bearer token whose user may `get` the path /metrics (TokenReview and "
        "SubjectAccessReview). Otherwise plain HTTP without authentication; metrics contain no secrets.",
    )
    cert_dir: Path | None = Field(
        None,
        description="Directory with tls.crt and tls.key, read again when they change; unset: a generated self-signed "
        "certificate.",
    )


class ProbeServer(Section):
    """The server of /healthz and /readyz."""

    bind_address: str = Field("0.0.0.0", description=LISTENS_ON)  # noqa: S104 - asked by kubelet
    port: PortNumber = Field(ports.PLATFORM_HEALTH.number, description="Port; 0: a free port.")


class CertProvisionMode(StrEnum):
    """Who issues the webhook's certificates."""

    AUTO = "auto"
    MANUAL = "manual"
    #: Not in the reference, whose chart alone handles cert-manager.
    CERT_MANAGER = "cert-manager"


class WebhookServer(Section):
    """The admission and conversion webhooks."""

    enabled: bool = Field(
        True,
        description="Must be true: v1alpha1 objects are read and written through the webhooks. To run without webhooks, run "
        "all services except `admission`.",
    )
    host: str = Field("0.0.0.0", description=LISTENS_ON)  # noqa: S104 - called by the API server
    bind_address: str = Field("", description="Ignored, as by the operator; `host` is used.")
    port: PortNumber = Field(ports.PLATFORM_WEBHOOK.number, description="Port.")
    cert_dir: Path = Field(
        Path("/tmp/k8s-webhook-server/serving-certs"),  # noqa: S108 - the reference's
        description="Directory with tls.crt, tls.key and ca.crt, for `certProvisionMode: manual`.",
    )
    cert_provision_mode: CertProvisionMode = Field(
        CertProvisionMode.AUTO,
        description="`auto`: a CA that the platform generates, in the Secret. `manual`: the files in `certDir`. "
        "`cert-manager`: a Certificate of cert-manager writes the Secret.",
    )
    secret_name: str = Field("webhook-server-cert", description="Secret with the certificate.")
    service_name: str = Field("", description="Service that the API server calls, in `platform.admission.namespace`.")


class Server(Section):
    """Servers of a process."""

    metrics: MetricsServer = MetricsServer()
    health_probe: ProbeServer = ProbeServer()
    webhook: WebhookServer = WebhookServer()


class LeaderElection(Section):
    """Leader election with Kubernetes Leases: one replica of a service is active, the others stand by."""

    enabled: bool = Field(
        False,
        description="Same as `platform.standby.mode: always`. Ignored, with a warning, if `platform.etcd.endpoints` is set.",
    )
    id: str = Field("", description="Prefix of the names of Leases, before the service; required if enabled.")
    namespace: str = Field("", description="Namespace of the Leases; empty: `platform.standby.namespace`.")

    @model_validator(mode="after")
    def _has_id(self) -> Self:
        if self.enabled and not self.id:
            raise ValueError("leaderElection.id is required if leaderElection.enabled is true")
        return self


class NamespaceScope(Section):
    """The Lease that announces a namespace-restricted operator."""

    lease_duration: Duration = Field(30.0, description="How long the Lease is valid without renewal.")
    lease_renew_interval: Duration = Field(10.0, description="How often the Lease is renewed.")
    trusted_namespaces: tuple[str, ...] = Field(
        (),
        description="Namespaces, as names or patterns such as team-*, where the Lease of another operator also disables this "
        "platform's webhooks. In all other namespaces the webhooks check every object; otherwise users who may write "
        "Leases could store unchecked objects.",
    )

    @model_validator(mode="after")
    def _renewed_in_time(self) -> Self:
        if not 0 < self.lease_renew_interval < self.lease_duration:
            raise ValueError("namespace.scope.leaseRenewInterval must be above 0 and shorter than leaseDuration")
        return self


class Namespace(Section):
    """Namespaces that are served."""

    restricted: str = Field("", description="The only namespace that is served; empty: all namespaces.")
    scope: NamespaceScope = NamespaceScope()


class Grove(Section):
    """The Grove orchestrator."""

    enabled: bool | None = Field(None, description="Unset: enabled if the cluster serves its API.")
    termination_delay: Duration = Field(900.0, description="terminationDelay of PodCliqueSets.")


class Switch(Section):
    """Whether an optional API of the cluster is used."""

    enabled: bool | None = Field(None, description="Unset: enabled if the cluster serves its API.")


class Volcano(Section):
    """The Volcano scheduler."""

    enabled: bool | None = Field(None, description="`false`: the annotation `nvidia.com/volcano-queue` has no effect.")


class Orchestrators(Section):
    """Multi-node orchestrators and schedulers."""

    grove: Grove = Grove()
    lws: Switch = Switch()
    kai_scheduler: Switch = Switch()
    volcano_scheduler: Volcano = Volcano()


class Infrastructure(Section):
    """Addresses for workloads. Workloads never get the platform's own NATS and etcd."""

    nats_address: str = Field("", description="NATS_SERVER of workloads.")
    etcd_address: str = Field("", description="ETCD_ENDPOINTS of workloads.")
    model_express_url: str = Field("", alias="modelExpressURL", description="MODEL_EXPRESS_URL of workloads.")
    prometheus_endpoint: str = Field("", description="PROMETHEUS_ENDPOINT of workloads.")
    nats_tls_ca_path: str = Field("", alias="natsTLSCAPath", description="NATS_TLS_CA_CERT_PATH of workloads.")
    nats_tls_client_cert_path: str = Field(
        "", alias="natsTLSClientCertPath", description="NATS_TLS_CLIENT_CERT_PATH of workloads."
    )
    nats_tls_client_key_path: str = Field(
        "", alias="natsTLSClientKeyPath", description="NATS_TLS_CLIENT_KEY_PATH of workloads."
    )
    tcp_tls_cert_path: str = Field("", alias="tcpTLSCertPath", description="DYN_TCP_TLS_CERT_PATH of workloads.")
    tcp_tls_key_path: str = Field("", alias="tcpTLSKeyPath", description="DYN_TCP_TLS_KEY_PATH of workloads.")
    tcp_tls_ca_path: str = Field("", alias="tcpTLSCAPath", description="DYN_TCP_TLS_CA_CERT_PATH of workloads.")
    tcp_tls_client_cert_path: str = Field(
        "", alias="tcpTLSClientCertPath", description="DYN_TCP_TLS_CLIENT_CERT_PATH of workloads."
    )
    tcp_tls_client_key_path: str = Field(
        "", alias="tcpTLSClientKeyPath", description="DYN_TCP_TLS_CLIENT_KEY_PATH of workloads."
    )
    tcp_tls_client_ca_path: str = Field(
        "", alias="tcpTLSClientCAPath", description="DYN_TCP_TLS_CLIENT_CA_CERT_PATH of workloads."
    )
    tcp_tls_server_name: str = Field("", alias="tcpTLSServerName", description="DYN_TCP_TLS_SERVER_NAME of workloads.")

    @model_validator(mode="after")
    def _tls_is_complete(self) -> Self:
        """Incomplete TLS settings would make connections fail; rules of the reference 1.5."""
        for first, second in (
            ("natsTLSClientCertPath", "natsTLSClientKeyPath"),
            ("tcpTLSCertPath", "tcpTLSKeyPath"),
            ("tcpTLSClientCertPath", "tcpTLSClientKeyPath"),
        ):
            if bool(self._named(first)) != bool(self._named(second)):
                raise ValueError(f"infrastructure.{first} and {second} must be set together")
        for name, needed in (
            ("tcpTLSCertPath", "tcpTLSCAPath"),
            ("tcpTLSCAPath", "tcpTLSCertPath"),
            ("tcpTLSClientCAPath", "tcpTLSCertPath"),
            ("tcpTLSClientCertPath", "tcpTLSCAPath"),
            ("tcpTLSServerName", "tcpTLSCAPath"),
            ("natsTLSClientCertPath", "natsTLSCAPath"),
        ):
            if self._named(name) and not self._named(needed):
                raise ValueError(f"infrastructure.{name} requires infrastructure.{needed}")
        if self.nats_tls_ca_path and not self.nats_address.startswith("tls://"):
            raise ValueError("infrastructure.natsTLSCAPath requires a natsAddress that begins with tls://")
        return self

    def _named(self, alias: str) -> str:
        """The value of a setting, by its name in the file."""
        name = next(name for name, field in type(self).model_fields.items() if field.alias == alias)
        return str(getattr(self, name))


class Ingress(Section):
    """Defaults for the ingress of frontends."""

    virtual_service_gateway: str = Field("", description="Istio gateway.")
    controller_class_name: str = Field("", description="Ingress class.")
    controller_tls_secret_name: str = Field(
        "", alias="controllerTLSSecretName", description="TLS Secret of the Ingress."
    )
    host_suffix: str = Field("", description="Suffix of host names.")


class Istio(Section):
    """TLS between the mesh and the endpoint picker."""

    tls_mode: str = Field("SIMPLE", description="TLS mode of DestinationRules.")
    insecure_skip_verify: bool = Field(True, description="Whether certificates are not verified.")
    client_certificate: str = Field(
        "", description="Client certificate with tlsMode `MUTUAL`: a file in the mesh's proxy."
    )
    private_key: str = Field("", description="Key with tlsMode `MUTUAL`: a file in the mesh's proxy.")
    ca_certificates: str = Field("", description="CA certificates with tlsMode `MUTUAL`: a file in the mesh's proxy.")

    @model_validator(mode="after")
    def _has_a_certificate(self) -> Self:
        if self.tls_mode == "MUTUAL" and not (self.client_certificate and self.private_key):
            raise ValueError("serviceMesh.istio.tlsMode MUTUAL requires clientCertificate and privateKey")
        return self


class ServiceMesh(Section):
    """The service mesh."""

    enabled: bool | None = Field(None, description="`false`: no service mesh, and `provider` is ignored.")
    provider: Literal["", "istio"] = Field("", description="Empty: no service mesh.")
    istio: Istio = Istio()


class Rbac(Section):
    """ClusterRoles of workloads; RoleBindings bind them in the namespace of the workload."""

    planner_cluster_role_name: str = Field(
        "", description="ClusterRole of planner pods; empty: a Role in each namespace."
    )
    dgdr_profiling_cluster_role_name: str = Field("", description="ClusterRole of profiling Jobs.")
    epp_cluster_role_name: str = Field(
        "", description="ClusterRole of endpoint picker pods; empty: a Role in each namespace."
    )


class Mpi(Section):
    """SSH key for multi-node TensorRT-LLM."""

    ssh_secret_name: str = Field("", description="Name of the Secret; empty: `mpi-run-ssh-secret`.")
    ssh_secret_namespace: str = Field(
        "",
        description="Namespace of a Secret that all namespaces share; if there is none, each namespace gets its own key.",
    )


class Seccomp(Section):
    """Seccomp profile of checkpoint Jobs and of pods that are restored from a checkpoint."""

    disabled: bool = Field(False, description="Whether pods run without a profile.")
    profile: str = Field("profiles/block-iouring.json", description="Profile of type Localhost.")

    @property
    def localhost(self) -> str:
        """Localhost profile of pods; "" if disabled."""
        return "" if self.disabled else self.profile


class CheckpointPvc(Section):
    """PersistentVolumeClaim for checkpoints."""

    pvc_name: str = Field("", description="Name of the PersistentVolumeClaim.")
    base_path: str = Field("", description="Absolute path where the volume is mounted.")
    create: bool = Field(False, description="Whether the platform creates it.")
    size: str = Field("", description="Size, if `create` is true.")
    storage_class_name: str = Field("", description="StorageClass, if `create` is true.")
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce"] = Field(
        "ReadWriteMany", description="Access mode, if `create` is true."
    )


class CheckpointStorage(Section):
    """Storage of checkpoints."""

    type: Literal["", "pvc", "s3", "oci"] = Field(
        "",
        description="`pvc`, or empty for the volume that the snapshot agents mount. `s3` and `oci` are rejected if checkpoints "
        "are enabled: agents store files on a volume. For a bucket, use a StorageClass whose CSI driver writes to it.",
    )
    pvc: CheckpointPvc = CheckpointPvc()
    s3: dict[str, str] = Field(default_factory=dict, description="Ignored, with a warning.")
    oci: dict[str, str] = Field(default_factory=dict, description="Ignored, with a warning.")


class Checkpoint(Section):
    """Checkpoint and restore."""

    enabled: bool = Field(False, description="Whether pods are checkpointed and restored.")
    cleanup_image: str = Field("", description="Ignored, with a warning.")
    seccomp: Seccomp = Seccomp()
    storage: CheckpointStorage = CheckpointStorage()

    @model_validator(mode="after")
    def _has_complete_storage(self) -> Self:
        if not self.enabled or self.storage.type == "":
            return self
        if self.storage.type != "pvc":
            raise ValueError(
                f"checkpoint.storage.type {self.storage.type} is not supported: snapshot agents store files on a volume; use "
                "pvc; for a bucket, use a StorageClass whose CSI driver writes to it"
            )
        at, claim = "checkpoint.storage.pvc", self.storage.pvc
        if not claim.pvc_name:
            raise ValueError(f"{at}.pvcName is required if checkpoint.storage.type is pvc")
        if not claim.base_path.startswith("/"):
            raise ValueError(f"{at}.basePath must be an absolute path")
        if claim.create and not claim.size:
            raise ValueError(f"{at}.size is required if {at}.create is true")
        return self


class DiscoveryBackend(StrEnum):
    """How workers find each other."""

    KUBERNETES = "kubernetes"
    ETCD = "etcd"


class Discovery(Section):
    """Discovery of workers."""

    backend: DiscoveryBackend = Field(DiscoveryBackend.KUBERNETES, description="Where workers register.")


class Gpu(Section):
    """Discovery of hardware."""

    discovery_enabled: bool = Field(True, description="Whether GPUs are read from nodes.")


def _level(value: Any) -> Any:
    """Accepts `INFO` and `warn`, too."""
    return {"warn": "warning"}.get(value.lower(), value.lower()) if isinstance(value, str) else value


class Logging(Section):
    """Log lines, on standard error."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_level)] = Field(
        "info", description="Minimum level of log lines."
    )
    format: Literal["json", "console"] = Field("json", description="`json` for programs, `console` for people.")


class Security(Section):
    """Settings of the reference's servers. TLS is always 1.2 or later, with forward secrecy."""

    enable_http2: bool = Field(
        False, alias="enableHTTP2", description="Ignored, with a warning: servers always speak HTTP/1.1."
    )


class Lpx(Section):
    """Inference on LPUs (Dynamo 1.6)."""

    enabled: bool = Field(False, description="Ignored, with a warning: components of type `lpx` are rejected.")
    model_registry_url: str = Field("", alias="modelRegistryURL", description="Ignored, with a warning.")


class OperatorConfiguration(Section):
    """The whole file."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, title=KIND)

    api_version: Literal["operator.config.dynamo.nvidia.com/v1alpha1"] = Field(API_VERSION, description="Version.")
    kind: Literal["OperatorConfiguration"] = Field(KIND, description="Kind.")
    server: Server = Server()
    leader_election: LeaderElection = LeaderElection()
    namespace: Namespace = Namespace()
    orchestrators: Orchestrators = Orchestrators()
    dra: Switch = Switch()
    infrastructure: Infrastructure = Infrastructure()
    ingress: Ingress = Ingress()
    service_mesh: ServiceMesh = ServiceMesh()
    rbac: Rbac = Rbac()
    mpi: Mpi = Mpi()
    checkpoint: Checkpoint = Checkpoint()
    discovery: Discovery = Discovery()
    gpu: Gpu = Gpu()
    logging: Logging = Logging()
    security: Security = Security()
    lpx: Lpx = Lpx()
    platform: Platform = Platform()
    _older_names: tuple[str, ...] = PrivateAttr(())

    def with_older_names(self, names: tuple[str, ...]) -> Self:
        """A copy that knows which older names of settings were given."""
        read = self.model_copy()
        read._older_names = names
        return read

    @property
    def older_names(self) -> tuple[str, ...]:
        """A warning for each older name that was given, logged at start."""
        return tuple(
            f"{name} is deprecated; use the setting {' and '.join(OLDER_NAMES[name])}" for name in self._older_names
        )

    @model_validator(mode="after")
    def _has_webhooks(self) -> Self:
        if not self.server.webhook.enabled:
            raise ValueError(
                "server.webhook.enabled must be true: v1alpha1 objects are read and written through the webhooks; to run "
                "without webhooks, run all services except admission, and use only v1beta1"
            )
        return self

    @property
    def ignored(self) -> tuple[str, ...]:
        """Settings that are set and have no effect, each with the reason; logged as warnings at start."""
        ignored = []
        if self.lpx.enabled:
            ignored.append("lpx is ignored: the platform does not support LPUs, and rejects components of type lpx")
        if self.lpx.model_registry_url:
            ignored.append("lpx.modelRegistryURL is ignored: the platform does not support LPUs")
        if self.security.enable_http2:
            ignored.append("security.enableHTTP2 is ignored: servers always speak HTTP/1.1")
        if self.leader_election.enabled and self.platform.shares_work:
            ignored.append(
                "leaderElection is ignored: platform.etcd.endpoints is set, and replicas share work through etcd"
            )
        webhook = self.server.webhook
        if webhook.bind_address not in ("", webhook.host):
            ignored.append(f"server.webhook.bindAddress is ignored: server.webhook.host, {webhook.host}, is used")
        storage = self.checkpoint.storage
        for name, given in (("s3", storage.s3), ("oci", storage.oci)):
            if given:
                ignored.append(
                    f"checkpoint.storage.{name} is ignored: snapshot agents store files on a volume; use pvc"
                )
        if self.checkpoint.cleanup_image:
            ignored.append("checkpoint.cleanupImage is ignored: the snapshot agents delete the files of a checkpoint")
        return tuple(ignored)

    @property
    def served(self) -> tuple[str, ...]:
        """Namespaces that this platform serves; empty: all."""
        restricted = (self.namespace.restricted,) if self.namespace.restricted else ()
        return self.platform.kubernetes.namespaces or restricted
