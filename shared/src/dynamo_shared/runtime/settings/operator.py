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
    """Where /metrics is served."""

    enabled: bool = Field(True, description="Whether it is served at all.")
    bind_address: str = Field("0.0.0.0", description=LISTENS_ON)  # noqa: S104 - scraped from other pods
    port: PortNumber = Field(ports.PLATFORM_METRICS.number, description="Port; 0 picks a free one.")
    secure: bool = Field(
        True,
        description="TLS, and only for bearer tokens whose user may `get` the path /metrics (TokenReview and "
        "SubjectAccessReview). Otherwise plain HTTP for all; it holds no secret.",
    )
    cert_dir: Path | None = Field(
        None,
        description="Folder of tls.crt and tls.key, read again when they change; "
        "without it a certificate of our own, signed by itself, is served.",
    )


class ProbeServer(Section):
    """Where /healthz and /readyz are served."""

    bind_address: str = Field("0.0.0.0", description=LISTENS_ON)  # noqa: S104 - asked by kubelet
    port: PortNumber = Field(ports.PLATFORM_HEALTH.number, description="Port; 0 picks a free one.")


class CertProvisionMode(StrEnum):
    """Who makes the webhook's certificates."""

    AUTO = "auto"
    MANUAL = "manual"
    #: Not in the reference, which leaves cert-manager to its chart.
    CERT_MANAGER = "cert-manager"


class WebhookServer(Section):
    """The admission and conversion webhooks."""

    enabled: bool = Field(
        True,
        description="Must be true: v1alpha1 is read and written through the webhooks. A platform without them runs "
        "all services but `admission`.",
    )
    host: str = Field("0.0.0.0", description=LISTENS_ON)  # noqa: S104 - called by the API server
    bind_address: str = Field("", description="Ignored, as by the operator: `host` counts.")
    port: PortNumber = Field(ports.PLATFORM_WEBHOOK.number, description="Port.")
    cert_dir: Path = Field(
        Path("/tmp/k8s-webhook-server/serving-certs"),  # noqa: S108 - the reference's
        description="Folder of tls.crt, tls.key and ca.crt, where they are given.",
    )
    cert_provision_mode: CertProvisionMode = Field(
        CertProvisionMode.AUTO,
        description="`auto`: an authority of our own, in the Secret. `manual`: the files of `certDir`. "
        "`cert-manager`: its Certificate fills the Secret.",
    )
    secret_name: str = Field("webhook-server-cert", description="Secret that holds it.")
    service_name: str = Field("", description="Service that the API server calls, in `platform.admission.namespace`.")


class Server(Section):
    """Ports of a process."""

    metrics: MetricsServer = MetricsServer()
    health_probe: ProbeServer = ProbeServer()
    webhook: WebhookServer = WebhookServer()


class LeaderElection(Section):
    """Election through Kubernetes leases: one replica of a service works, the others stand by. etcd is used before it."""

    enabled: bool = Field(
        False,
        description="As `platform.standby.mode: always`. Ignored, with a warning, where `platform.etcd.endpoints` are given.",
    )
    id: str = Field("", description="Names of leases begin with it, the service follows; required where enabled.")
    namespace: str = Field("", description="Namespace of the leases; empty: `platform.standby.namespace`.")

    @model_validator(mode="after")
    def _has_id(self) -> Self:
        if self.enabled and not self.id:
            raise ValueError("leaderElection.id is required where leaderElection.enabled is true")
        return self


class NamespaceScope(Section):
    """The lease by which a namespace-restricted operator is known."""

    lease_duration: Duration = Field(30.0, description="How long it counts without renewal.")
    lease_renew_interval: Duration = Field(10.0, description="How often it is renewed.")
    trusted_namespaces: tuple[str, ...] = Field(
        (),
        description="Namespaces, as names or patterns such as team-*, in which another operator's lease switches off "
        "this platform's webhooks, too. In all others the webhooks check every object: who may write Leases in a "
        "namespace could store unchecked objects there otherwise.",
    )

    @model_validator(mode="after")
    def _renewed_in_time(self) -> Self:
        if self.lease_renew_interval >= self.lease_duration:
            raise ValueError("namespace.scope.leaseRenewInterval must be shorter than leaseDuration")
        return self


class Namespace(Section):
    """Whether one namespace or the whole cluster is served."""

    restricted: str = Field("", description="The only namespace served; empty serves all.")
    scope: NamespaceScope = NamespaceScope()


class Grove(Section):
    """The Grove orchestrator."""

    enabled: bool | None = Field(None, description="Unset: used where its API is served.")
    termination_delay: Duration = Field(900.0, description="terminationDelay of PodCliqueSets.")


class Switch(Section):
    """An optional part of the cluster."""

    enabled: bool | None = Field(None, description="Unset: used where its API is served.")


class Volcano(Section):
    """The Volcano scheduler."""

    enabled: bool | None = Field(None, description="`false`: the annotation `nvidia.com/volcano-queue` has no effect.")


class Orchestrators(Section):
    """What can place the pods of several nodes together."""

    grove: Grove = Grove()
    lws: Switch = Switch()
    kai_scheduler: Switch = Switch()
    volcano_scheduler: Volcano = Volcano()


class Infrastructure(Section):
    """Addresses that workloads are given; they are never the platform's own NATS and etcd."""

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
        """A part of TLS without the rest would leave connections that cannot be made; rules of the reference 1.5."""
        for first, second in (
            ("natsTLSClientCertPath", "natsTLSClientKeyPath"),
            ("tcpTLSCertPath", "tcpTLSKeyPath"),
            ("tcpTLSClientCertPath", "tcpTLSClientKeyPath"),
        ):
            if bool(self._named(first)) != bool(self._named(second)):
                raise ValueError(f"infrastructure.{first} and {second} need each other")
        for name, needed in (
            ("tcpTLSCertPath", "tcpTLSCAPath"),
            ("tcpTLSCAPath", "tcpTLSCertPath"),
            ("tcpTLSClientCAPath", "tcpTLSCertPath"),
            ("tcpTLSClientCertPath", "tcpTLSCAPath"),
            ("tcpTLSServerName", "tcpTLSCAPath"),
            ("natsTLSClientCertPath", "natsTLSCAPath"),
        ):
            if self._named(name) and not self._named(needed):
                raise ValueError(f"infrastructure.{name} needs {needed}, too")
        if self.nats_tls_ca_path and not self.nats_address.startswith("tls://"):
            raise ValueError("infrastructure.natsTLSCAPath needs a natsAddress that begins with tls://")
        return self

    def _named(self, alias: str) -> str:
        """The value of a setting, by its name in the file."""
        name = next(name for name, field in type(self).model_fields.items() if field.alias == alias)
        return str(getattr(self, name))


class Ingress(Section):
    """Defaults of frontends' ingress."""

    virtual_service_gateway: str = Field("", description="Istio gateway.")
    controller_class_name: str = Field("", description="Ingress class.")
    controller_tls_secret_name: str = Field("", alias="controllerTLSSecretName", description="TLS secret of hosts.")
    host_suffix: str = Field("", description="Suffix of host names.")


class Istio(Section):
    """How the mesh talks to the endpoint picker."""

    tls_mode: str = Field("SIMPLE", description="TLS mode of DestinationRules.")
    insecure_skip_verify: bool = Field(True, description="Whether certificates go unverified.")
    client_certificate: str = Field("", description="With tlsMode `MUTUAL`: certificate, a file of the mesh's proxy.")
    private_key: str = Field("", description="With tlsMode `MUTUAL`: its key, a file of the mesh's proxy.")
    ca_certificates: str = Field("", description="With tlsMode `MUTUAL`: authorities, a file of the mesh's proxy.")

    @model_validator(mode="after")
    def _has_a_certificate(self) -> Self:
        if self.tls_mode == "MUTUAL" and not (self.client_certificate and self.private_key):
            raise ValueError("serviceMesh.istio.tlsMode MUTUAL needs clientCertificate and privateKey, too")
        return self


class ServiceMesh(Section):
    """The service mesh."""

    enabled: bool | None = Field(None, description="`false`: none, whatever `provider` says.")
    provider: Literal["", "istio"] = Field("", description="Empty: none.")
    istio: Istio = Istio()


class Rbac(Section):
    """ClusterRoles that workloads are bound to in their namespace."""

    planner_cluster_role_name: str = Field("", description="Of planner pods; empty: a Role in each namespace.")
    dgdr_profiling_cluster_role_name: str = Field("", description="Of profiling jobs.")
    epp_cluster_role_name: str = Field("", description="Of endpoint picker pods; empty: a Role in each namespace.")


class Mpi(Section):
    """The ssh key of TensorRT-LLM over several nodes."""

    ssh_secret_name: str = Field("", description="Name of the secret; empty: `mpi-run-ssh-secret`.")
    ssh_secret_namespace: str = Field(
        "", description="Where a secret for all namespaces may be; without one, each namespace gets a key of its own."
    )


class Seccomp(Section):
    """Seccomp of checkpoint jobs, and of pods that start from a checkpoint."""

    disabled: bool = Field(False, description="Run without a profile.")
    profile: str = Field("profiles/block-iouring.json", description="Localhost profile.")

    @property
    def localhost(self) -> str:
        """The profile that pods run with; "" for none."""
        return "" if self.disabled else self.profile


class CheckpointPvc(Section):
    """A claim that holds checkpoints."""

    pvc_name: str = Field("", description="Name of the claim.")
    base_path: str = Field("", description="Absolute path in it.")
    create: bool = Field(False, description="Whether to create it.")
    size: str = Field("", description="Size, where created.")
    storage_class_name: str = Field("", description="Storage class, where created.")
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce"] = Field("ReadWriteMany", description="Where created.")


class CheckpointStorage(Section):
    """Where checkpoints are kept."""

    type: Literal["", "pvc", "s3", "oci"] = Field(
        "",
        description="Kind of storage: `pvc`, or empty for what the snapshot agents mount. `s3` and `oci` are refused where "
        "checkpoints are enabled: agents keep files on a volume, which a CSI driver can back by a bucket.",
    )
    pvc: CheckpointPvc = CheckpointPvc()
    s3: dict[str, str] = Field(default_factory=dict, description="Ignored, with a warning.")
    oci: dict[str, str] = Field(default_factory=dict, description="Ignored, with a warning.")


class Checkpoint(Section):
    """Checkpoint and restore."""

    enabled: bool = Field(False, description="Whether checkpoints are taken, and started from.")
    cleanup_image: str = Field("", description="Ignored, with a warning.")
    seccomp: Seccomp = Seccomp()
    storage: CheckpointStorage = CheckpointStorage()

    @model_validator(mode="after")
    def _has_complete_storage(self) -> Self:
        if not self.enabled or self.storage.type == "":
            return self
        if self.storage.type != "pvc":
            raise ValueError(
                f"checkpoint.storage.type {self.storage.type} is not supported: snapshot agents keep files on a volume; use "
                "pvc, with a StorageClass whose driver writes to a bucket if need be"
            )
        at, claim = "checkpoint.storage.pvc", self.storage.pvc
        if not claim.pvc_name:
            raise ValueError(f"{at}.pvcName is required where checkpoint.storage.type is pvc")
        if not claim.base_path.startswith("/"):
            raise ValueError(f"{at}.basePath must be an absolute path")
        if claim.create and not claim.size:
            raise ValueError(f"{at}.size is required where {at}.create is true")
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

    discovery_enabled: bool = Field(True, description="Whether nodes are read.")


def _level(value: Any) -> Any:
    """`INFO` and `warn` are as common as `info` and `warning`."""
    return {"warn": "warning"}.get(value.lower(), value.lower()) if isinstance(value, str) else value


class Logging(Section):
    """Log lines, on standard error."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_level)] = Field(
        "info", description="Least important lines shown."
    )
    format: Literal["json", "console"] = Field("json", description="For programs or for people.")


class Security(Section):
    """Settings of the reference's servers. TLS is 1.2 or later, with forward secrecy, whatever is set."""

    enable_http2: bool = Field(
        False,
        alias="enableHTTP2",
        description="Ignored, with a warning: servers speak HTTP/1.1, which needs no switch.",
    )


class Lpx(Section):
    """Inference on LPUs, of Dynamo 1.6."""

    enabled: bool = Field(False, description="Ignored, with a warning: components of type `lpx` are refused.")
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
        """The same, read with these older names of settings."""
        read = self.model_copy()
        read._older_names = names
        return read

    @property
    def older_names(self) -> tuple[str, ...]:
        """What the start says of each older name that was given."""
        return tuple(
            f"{name} is an older name: use the setting {' and '.join(OLDER_NAMES[name])}" for name in self._older_names
        )

    @model_validator(mode="after")
    def _has_webhooks(self) -> Self:
        if not self.server.webhook.enabled:
            raise ValueError(
                "server.webhook.enabled cannot be false: v1alpha1 objects are read and written through the webhooks; to run "
                "without them, run all services but admission, and use v1beta1 alone"
            )
        return self

    @property
    def ignored(self) -> tuple[str, ...]:
        """Settings that were given and have no effect, each with the reason: the start logs them as warnings."""
        ignored = []
        if self.lpx.enabled:
            ignored.append("lpx is ignored: the platform runs nothing on LPUs, and refuses components of type lpx")
        if self.lpx.model_registry_url:
            ignored.append("lpx.modelRegistryURL is ignored: the platform runs nothing on LPUs")
        if self.security.enable_http2:
            ignored.append("security.enableHTTP2 is ignored: servers speak HTTP/1.1")
        if self.leader_election.enabled and self.platform.shares_work:
            ignored.append(
                "leaderElection is ignored: platform.etcd.endpoints are given, and replicas share work through etcd"
            )
        webhook = self.server.webhook
        if webhook.bind_address not in ("", webhook.host):
            ignored.append(f"server.webhook.bindAddress is ignored: server.webhook.host, {webhook.host}, counts")
        storage = self.checkpoint.storage
        for name, given in (("s3", storage.s3), ("oci", storage.oci)):
            if given:
                ignored.append(f"checkpoint.storage.{name} is ignored: snapshot agents keep files on a volume; use pvc")
        if self.checkpoint.cleanup_image:
            ignored.append(
                "checkpoint.cleanupImage is ignored: files of a checkpoint are the snapshot agents' to delete"
            )
        return tuple(ignored)

    @property
    def served(self) -> tuple[str, ...]:
        """The only namespaces that this platform serves; empty where it serves all."""
        restricted = (self.namespace.restricted,) if self.namespace.restricted else ()
        return self.platform.kubernetes.namespaces or restricted
