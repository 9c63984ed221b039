"""The `platform` section: how the services reach Kubernetes, NATS and etcd, and how many of them there are."""

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
    """The platform's own NATS, which is never given to workloads."""

    servers: tuple[Address, ...] = Field(("nats://127.0.0.1:4222",), min_length=1, description="Tried in turn.")
    tls: Tls = Tls()
    user: str = Field("", description="User name.")
    password: SecretStr = Field(SecretStr(""), description="Password; better given as a file.")
    password_file: Path | None = Field(None, description="File that holds the password.")
    token: SecretStr = Field(SecretStr(""), description="Token, instead of user and password.")
    nkey_seed_file: Path | None = Field(None, description="NKey seed, instead of user and password.")
    creds_file: Path | None = Field(None, description="Credentials file (JWT), instead of user and password.")
    inbox_prefix: str = Field(
        "", description="Where answers come in; `_INBOX_<user>` where unset, as the generated permissions have it."
    )
    stream_replicas: int = Field(1, ge=1, le=5, description="Copies of each stream: 3 on a cluster of three servers.")
    first_member: str = Field(
        "",
        description="Tag (`server_tags`) of the server that a cluster grew from: streams that are missing are created there, "
        "which keeps what a single server had. Empty: anywhere.",
    )


class Etcd(Section):
    """The platform's own etcd, for leases. Without endpoints there are no leases, which suits one replica."""

    endpoints: tuple[Address, ...] = Field((), description="`https://host:2379`; tried in turn.")
    tls: Tls = Tls()
    user: str = Field("", description="User name.")
    password: SecretStr = Field(SecretStr(""), description="Password; better given as a file.")
    password_file: Path | None = Field(None, description="File that holds the password.")
    prefix: str = Field(
        "/dynamo-platform", description="The platform's keys begin with it, followed by the cluster's name."
    )
    lease_ttl: Duration = Field(10.0, ge=2, description="How long a silent replica keeps what it holds.")


class LeaseMode(enum.StrEnum):
    """When replicas of a service stand by for each other by a Lease of Kubernetes, where there is no etcd."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Standby(Section):
    """Without etcd one replica of a service works, by a Lease of Kubernetes, and the others stand by."""

    mode: LeaseMode = Field(
        LeaseMode.AUTO,
        description="`auto`: in a pod, and not on a workstation; `always`; `never`: there is one replica.",
    )
    namespace: str = Field("", description="Namespace of the Leases; empty: $POD_NAMESPACE, else the pod's own.")
    duration: Duration = Field(
        15.0, ge=3, le=60, description="How long a silent replica keeps what it holds; renewed three times as often."
    )


class Kubernetes(Section):
    """Which API server; without a kubeconfig $KUBECONFIG, ~/.kube/config or the pod's own account."""

    kubeconfig: Path | None = Field(None, description="kubeconfig file.")
    context: str | None = Field(None, description="Context in it; its current one where unset.")
    namespaces: tuple[str, ...] = Field(
        (),
        description="The only namespaces that are served, each announced by a lease as with namespace.restricted; "
        "all where empty.",
    )


class Gateway(Section):
    """The gateway of the Gateway API through which graphs are reached from outside."""

    name: str = Field("", description="Gateway that each graph's HTTPRoute is attached to; empty: no routes.")
    namespace: str = Field("", description="Its namespace; the graph's own where empty.")


class Tracing(Section):
    """OpenTelemetry traces."""

    otlp_endpoint: str = Field("", description="OTLP over HTTP, `http://host:4318`; empty: no traces.")
    sample_ratio: float = Field(1.0, ge=0, le=1, description="Share of traces that are kept.")


class Admission(Section):
    """The webhooks, as far as `server.webhook` has no word for it."""

    url: str = Field(
        "",
        pattern=r"^(https://[^/@\s]+)?$",
        description="`https://host:port` by which the API server reaches this process without a Service: for development.",
    )
    namespace: str = Field(
        "", description="Namespace of Service and Secret; empty: $POD_NAMESPACE, else `dynamo-system`."
    )
    service_port: int = Field(443, ge=1, le=65535, description="Port of the Service.")
    certificate: str = Field(
        "",
        description="cert-manager's Certificate, in the same namespace; empty: named as `server.webhook.secretName`.",
    )
    ca_validity: Duration = Field(365 * 86400.0, ge=60, description="How long an authority of our own is valid.")
    certificate_validity: Duration = Field(90 * 86400.0, ge=30, description="How long a certificate of it is valid.")
    operators: tuple[str, ...] = Field(
        (), description="Users who act as the platform, besides its own service account ($POD_SERVICE_ACCOUNT)."
    )
    client_ca_file: Path | None = Field(
        None,
        description="Authorities (PEM) of the API server's client certificate: reviews without one are refused. Read again "
        "when it changes. Unset: reviews are taken from all who reach the port. Conversion never asks for one.",
    )
    client_names: tuple[str, ...] = Field(
        (), description="Common names that such a certificate may have; empty: all that the authorities signed."
    )
    owner: str = Field(
        "",
        description="ClusterRole that owns the webhook configurations, so that they are deleted with it; empty: they stay "
        "until someone deletes them.",
    )
    max_in_flight: int = Field(
        64,
        ge=1,
        le=1024,
        description="Requests at the same time; further requests are refused, and clients retry later.",
    )
    refresh: Duration = Field(10.0, ge=0.05, description="How often the cluster's APIs and topologies are read.")
    check: Duration = Field(30.0, ge=0.05, description="How often the registration is checked, and repaired.")
    drain: Duration = Field(5.0, le=15, description="How long an ending replica still serves, not being ready.")


#: Of a variable, as Kubernetes takes it.
VariableName = Annotated[str, Field(pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$", max_length=253)]


class AddedResources(Section):
    """Resources of a container that the platform adds to pods of graphs; none, as the operator adds it."""

    requests: dict[str, Quantity] = Field({}, description="Requests.")
    limits: dict[str, Quantity] = Field({}, description="Limits.")


class AddedContainers(Section):
    """Containers that the platform adds to pods of graphs, for namespaces with a ResourceQuota or a LimitRange.

    A change replaces the pods that have such containers.
    """

    #: `wait-for-leader-*` and `fix-gms-perms`: they end before the engine starts. What the engine requests anyway counts once.
    init: AddedResources = AddedResources()
    #: `gms-server`: it runs next to the engine, and adds to what the pod requests.
    gpu_memory_server: AddedResources = AddedResources()


class Platform(Section):
    """What the reference's configuration has no word for."""

    cluster_name: str = Field("local", min_length=1, max_length=63, description="Token of subjects and of etcd keys.")
    version: str = Field("1.2.0", description="Dynamo version that pods are stamped with (operator origin version).")
    nats: Nats = Nats()
    etcd: Etcd = Etcd()
    standby: Standby = Standby()
    kubernetes: Kubernetes = Kubernetes()
    replicas: int | None = Field(
        None, ge=1, description="Replicas of this service. 1: no leases are needed; unset: as etcd.endpoints says."
    )
    replica_id: str = Field("", description="Name of this process among them; made of the host's where unset.")
    workers: int = Field(
        16,
        ge=1,
        le=256,
        description="Objects of one namespace that one service works on at once; a quarter more is for other namespaces.",
    )
    resync: Duration = Field(
        600.0, ge=10, description="How often everything is reconciled again, spread over that time."
    )
    gateway: Gateway = Gateway()
    tracing: Tracing = Tracing()
    added_containers: AddedContainers = AddedContainers()
    graph_env: dict[VariableName, str] = Field(
        {},
        description="Variables of the containers that run Dynamo in pods of graphs, where the graph has none of that name in "
        "`spec.env` or in the container. A change replaces these pods. Not for secrets: who may read pods reads them.",
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
            raise ValueError("more than one replica needs etcd.endpoints, or standby.mode: always")
        return self
