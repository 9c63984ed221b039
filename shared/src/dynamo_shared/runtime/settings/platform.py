"""The `platform` section: connections to Kubernetes, NATS and etcd, and replicas."""

import enum
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, model_validator

from dynamo_shared.api.model import Quantity
from dynamo_shared.runtime.settings.addresses import Address, Tls
from dynamo_shared.runtime.settings.base import Duration, Section
from dynamo_shared.runtime.settings.dynadmin import Dynadmin
from dynamo_shared.runtime.settings.image_builder import ImageBuilder
from dynamo_shared.runtime.settings.model_discovery import ModelDiscovery
from dynamo_shared.runtime.settings.planner import Planner
from dynamo_shared.runtime.settings.scaler import Scaler


class Nats(Section):
    """The platform's own NATS. Workloads never get its address."""

    servers: tuple[Address, ...] = Field(
        ("nats://127.0.0.1:4222",), min_length=1, description="Servers, tried in order."
    )
    tls: Tls = Tls()
    user: str = Field("", description="User name.")
    password: SecretStr = Field(SecretStr(""), description="Password; prefer `passwordFile`.")
    password_file: Path | None = Field(None, description="File with the password.")
    token: SecretStr = Field(SecretStr(""), description="Token, instead of user and password.")
    nkey_seed_file: Path | None = Field(None, description="File with an NKey seed, instead of user and password.")
    creds_file: Path | None = Field(None, description="Credentials file (JWT), instead of user and password.")
    inbox_prefix: str = Field(
        "", description="Prefix of inbox subjects; empty: `_INBOX_<user>`, which the generated permissions allow."
    )
    stream_replicas: int = Field(
        1, ge=1, le=5, description="Replicas of each stream; 3 for a cluster of three servers."
    )
    first_member: str = Field(
        "",
        description="Tag (`server_tags`) of the server that existed before it became a cluster. Missing streams are created on "
        "it, so that its data are kept. Empty: on any server.",
    )


class Etcd(Section):
    """The platform's own etcd, for leases. Without endpoints there are no leases; one replica needs none."""

    endpoints: tuple[Address, ...] = Field((), description="Endpoints, `https://host:2379`, tried in order.")
    tls: Tls = Tls()
    user: str = Field("", description="User name.")
    password: SecretStr = Field(SecretStr(""), description="Password; prefer `passwordFile`.")
    password_file: Path | None = Field(None, description="File with the password.")
    prefix: str = Field("/dynamo-platform", description="Prefix of all keys, before the cluster's name.")
    lease_ttl: Duration = Field(10.0, ge=2, description="How long a replica that stops renewing keeps its partitions.")


class LeaseMode(enum.StrEnum):
    """When a Kubernetes Lease elects the active replica of a service, without etcd."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Standby(Section):
    """Without etcd a Kubernetes Lease elects the active replica of a service; the others stand by."""

    mode: LeaseMode = Field(
        LeaseMode.AUTO, description="`auto`: election in a pod, none elsewhere; `always`; `never`: for one replica."
    )
    namespace: str = Field("", description="Namespace of the Leases; empty: $POD_NAMESPACE, or that of the pod.")
    duration: Duration = Field(
        15.0,
        ge=3,
        le=60,
        description="How long a replica that stops renewing stays active. Renewed three times in this time.",
    )


class Kubernetes(Section):
    """The API server. Without `kubeconfig`: $KUBECONFIG, ~/.kube/config, or the pod's service account."""

    kubeconfig: Path | None = Field(None, description="kubeconfig file.")
    context: str | None = Field(None, description="Context in the kubeconfig; unset: its current context.")
    namespaces: tuple[str, ...] = Field(
        (),
        description="The only namespaces that are served, each announced with a Lease as for `namespace.restricted`; empty: "
        "all namespaces.",
    )


class Gateway(Section):
    """The Gateway (Gateway API) that exposes graphs outside the cluster."""

    name: str = Field("", description="Parent of each graph's HTTPRoute; empty: no HTTPRoutes.")
    namespace: str = Field("", description="Namespace of the Gateway; empty: that of the graph.")


class Tracing(Section):
    """OpenTelemetry traces."""

    otlp_endpoint: str = Field(
        "", description="OTLP endpoint over HTTP, `http://host:4318` or `host:4318`; empty: no traces."
    )
    sample_ratio: float = Field(1.0, ge=0, le=1, description="Ratio of traces that are sampled.")


class Admission(Section):
    """Settings of the webhooks that `server.webhook` does not have."""

    url: str = Field(
        "",
        pattern=r"^(https://[^/@\s]+)?$",
        description="URL of this process for an API server without a Service, `https://host:port`; for development.",
    )
    namespace: str = Field(
        "", description="Namespace of Service and Secret; empty: $POD_NAMESPACE, or `dynamo-system`."
    )
    service_port: int = Field(443, ge=1, le=65535, description="Port of the Service.")
    certificate: str = Field(
        "",
        description="Name of cert-manager's Certificate, in `namespace`; empty: that of `server.webhook.secretName`.",
    )
    ca_validity: Duration = Field(365 * 86400.0, ge=60, description="Validity of a generated CA.")
    certificate_validity: Duration = Field(90 * 86400.0, ge=30, description="Validity of a certificate of this CA.")
    operators: tuple[str, ...] = Field(
        (), description="Users with the rights of the platform, next to its service account ($POD_SERVICE_ACCOUNT)."
    )
    client_ca_file: Path | None = Field(
        None,
        description="CA certificates (PEM file) of the API server's client certificate; reviews without one are rejected. Read "
        "again when it changes. Unset: reviews need no client certificate. Conversion never needs one.",
    )
    client_names: tuple[str, ...] = Field(
        (), description="Accepted common names of client certificates; empty: all certificates of `clientCaFile`."
    )
    owner: str = Field(
        "",
        description="ClusterRole that owns the webhook configurations, so that they are deleted with it; empty: they have no "
        "owner.",
    )
    max_in_flight: int = Field(
        64,
        ge=1,
        le=1024,
        description="Maximum concurrent requests. Further requests are rejected; clients retry later.",
    )
    refresh: Duration = Field(10.0, ge=0.05, description="How often the APIs and topologies of the cluster are read.")
    check: Duration = Field(30.0, ge=0.05, description="How often the webhook configurations are checked and repaired.")
    drain: Duration = Field(
        5.0, le=15, description="How long a stopping replica still serves while it reports not ready."
    )


#: Name of an environment variable that Kubernetes accepts.
VariableName = Annotated[str, Field(pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$", max_length=253)]


class AddedResources(Section):
    """Resources of a container that the platform adds to pods of graphs; by default none, as with the operator."""

    requests: dict[str, Quantity] = Field({}, description="Resource requests.")
    limits: dict[str, Quantity] = Field({}, description="Resource limits.")


class AddedContainers(Section):
    """Containers that the platform adds to pods of graphs; set resources if a namespace has a ResourceQuota or LimitRange.

    A change replaces the pods that have such containers.
    """

    #: `wait-for-leader-*` and `fix-gms-perms`: they complete before the engine starts, so their requests overlap the engine's.
    init: AddedResources = AddedResources()
    #: `gms-server`: it runs next to the engine, so its requests add to those of the pod.
    gpu_memory_server: AddedResources = AddedResources()


class Platform(Section):
    """Settings that the reference's configuration does not have."""

    cluster_name: str = Field(
        "local", min_length=1, max_length=63, description="Name of the cluster in subjects and etcd keys."
    )
    version: str = Field("1.2.0", description="Dynamo version that is recorded on pods (operator origin version).")
    nats: Nats = Nats()
    etcd: Etcd = Etcd()
    standby: Standby = Standby()
    kubernetes: Kubernetes = Kubernetes()
    replicas: int | None = Field(
        None, ge=1, description="Replicas of this service. 1: no leases. Unset: leases if `etcd.endpoints` is set."
    )
    replica_id: str = Field("", description="Name of this replica; empty: generated from the host name.")
    workers: int = Field(
        16,
        ge=1,
        le=256,
        description="Maximum concurrent reconciles of one namespace in one service; other namespaces share a quarter more.",
    )
    resync: Duration = Field(
        600.0, ge=10, description="How often all objects are reconciled again, spread over this time."
    )
    gateway: Gateway = Gateway()
    tracing: Tracing = Tracing()
    added_containers: AddedContainers = AddedContainers()
    graph_env: dict[VariableName, str] = Field(
        {},
        description="Environment variables of containers that run Dynamo in pods of graphs. `spec.env` and the container "
        "override them. A change replaces these pods. Not for secrets: all users who may read pods can read them.",
    )
    admission: Admission = Admission()
    dynadmin: Dynadmin = Dynadmin()
    image_builder: ImageBuilder = ImageBuilder()
    model_discovery: ModelDiscovery = ModelDiscovery()
    planner: Planner = Planner()
    scaler: Scaler = Scaler()

    @property
    def shares_work(self) -> bool:
        """Whether replicas share the work through etcd."""
        return bool(self.etcd.endpoints) and self.replicas != 1

    @model_validator(mode="after")
    def _replicas_need_etcd(self) -> Self:
        if (self.replicas or 1) > 1 and not self.etcd.endpoints and self.standby.mode is not LeaseMode.ALWAYS:
            raise ValueError("replicas above 1 require etcd.endpoints, or standby.mode: always")
        return self
