"""The section of our own: the platform's servers, replicas and traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from dynamo_shared.api import semver
from dynamo_shared.runtime.settings.base import Section

PositiveSeconds = Annotated[float, Field(gt=0)]


class TlsSettings(Section):
    """Certificates of a connection to a server."""

    ca_file: str = ""
    """Certificates that the server must be signed by; empty uses the system's."""
    cert_file: str = ""
    """Our own certificate, for servers that ask for one."""
    key_file: str = ""
    """Key of our own certificate."""

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("certFile and keyFile: set both or none")
        return self


def _secret(value: SecretStr | None, file: str) -> str | None:
    """The secret as it is now: files are read each time, because they are rotated."""
    if value is not None:
        return value.get_secret_value()
    return Path(file).read_text(encoding="utf-8").rstrip("\r\n") if file else None


class NatsSettings(Section):
    """The platform's own NATS; workloads are never given it."""

    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    """Addresses of the servers of one NATS cluster (`nats://`, `tls://`)."""
    tls: TlsSettings = TlsSettings()
    user: str = ""
    """User name."""
    password: SecretStr | None = None
    """Password of `user`."""
    password_file: str = ""
    """File with the password of `user`."""
    creds_file: str = ""
    """Credentials file of NATS (JWT and seed)."""
    token: SecretStr | None = None
    """Token."""
    name: str = "dynamo-platform"
    """How connections are called on the server."""

    @field_validator("servers")
    @classmethod
    def _some(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("must name at least one server, for example nats://127.0.0.1:4222")
        for server in value:
            if "://" in server and server.split("://", 1)[0] not in {"nats", "tls", "ws", "wss"}:
                raise ValueError("must be nats://HOST:PORT or tls://HOST:PORT")
        return value

    @model_validator(mode="after")
    def _one_way_to_log_in(self) -> Self:
        ways = [name for name, given in (("user", self.user), ("token", self.token), ("credsFile", self.creds_file)) if given]
        if len(ways) > 1:
            raise ValueError(f"{', '.join(ways)}: set one of them only")
        if self.password is not None and self.password_file:
            raise ValueError("password and passwordFile: set one of them only")
        return self

    def read_password(self) -> str | None:
        """The password as it is now; OSError where its file cannot be read."""
        return _secret(self.password, self.password_file)


class EtcdSettings(Section):
    """The platform's own etcd: leases of replicas. Not needed with one replica."""

    endpoints: tuple[str, ...] = ()
    """Addresses of the members of one etcd cluster (`http://HOST:PORT` or `https://HOST:PORT`). Empty runs without
    leases: one replica that works on everything."""
    tls: TlsSettings = TlsSettings()
    user: str = ""
    """User name."""
    password: SecretStr | None = None
    """Password of `user`."""
    password_file: str = ""
    """File with the password of `user`."""
    lease_ttl_seconds: Annotated[int, Field(ge=2, le=600)] = 10
    """Lifetime of a replica's lease: so long after a replica has died others take over."""
    prefix: str = "/dynamo-platform"
    """Where the platform's keys begin; the cluster's name follows."""
    timeout_seconds: PositiveSeconds = 3.0
    """Time-out of one request."""

    @field_validator("endpoints")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        schemes = set()
        for endpoint in value:
            scheme, separator, rest = endpoint.partition("://")
            if (separator and scheme not in {"http", "https"}) or not (rest if separator else endpoint):
                raise ValueError("must be http://HOST:PORT or https://HOST:PORT")
            schemes.add(scheme if separator else "http")
        if len(schemes) > 1:
            raise ValueError("must be all http or all https")
        return value

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        if self.password is not None and self.password_file:
            raise ValueError("password and passwordFile: set one of them only")
        if (self.password is not None or self.password_file) and not self.user:
            raise ValueError("user: must be set with a password")
        return self

    def read_password(self) -> str | None:
        """The password as it is now; OSError where its file cannot be read."""
        return _secret(self.password, self.password_file)


class KubernetesSettings(Section):
    """The cluster that is worked on."""

    kubeconfig: str = ""
    """Kubeconfig file; empty: $KUBECONFIG, ~/.kube/config, or the pod's service account."""
    context: str = ""
    """Context of the kubeconfig; empty: its current one."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that are worked on; empty: all of the cluster."""
    timeout_seconds: PositiveSeconds = 30.0
    """Time-out of one request."""


class TracingSettings(Section):
    """OpenTelemetry traces."""

    otlp_endpoint: str = ""
    """Base address of an OTLP/HTTP collector, for example http://collector:4318. Empty makes no traces at all."""
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of new traces that is kept."""


class PlatformSettings(Section):
    """What the reference does not have."""

    cluster_name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")] = "local"
    """Name of the Kubernetes cluster in subjects and keys: one NATS and one etcd can serve several clusters."""
    version: str = "1.0.0"
    """Version of the Dynamo operator that new graphs are stamped with, and whose rules they then follow (from 1.0.0 on,
    vLLM on several nodes uses multiprocessing instead of Ray)."""
    nats: NatsSettings = NatsSettings()
    etcd: EtcdSettings = EtcdSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    replicas: Annotated[int, Field(ge=1)] = 1
    """How many processes like this one run; more than one needs `etcd.endpoints`."""
    replica_id: str = ""
    """Name of this process among them, different for each; empty makes one up from the host's name."""
    workers: Annotated[int, Field(ge=1, le=1000)] = 16
    """How many keys a service works on at the same time."""
    resync_seconds: Annotated[float, Field(ge=10)] = 600.0
    """Each object is looked at again after this time, whether it changed or not."""
    shutdown_seconds: PositiveSeconds = 25.0
    """How long work under way may take to end when the process is told to stop; less than the pod's grace period."""
    tracing: TracingSettings = TracingSettings()

    @field_validator("version")
    @classmethod
    def _semantic(cls, value: str) -> str:
        if semver.parse(value) is None:
            raise ValueError("must be a semantic version such as 1.0.0")
        return value

    @model_validator(mode="after")
    def _replicas_need_leases(self) -> Self:
        if self.replicas > 1 and not self.etcd.endpoints:
            raise ValueError("etcd.endpoints: must be set when replicas is more than 1")
        return self
