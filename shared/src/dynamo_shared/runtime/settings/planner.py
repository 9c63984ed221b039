"""The `platform.planner` section: how requests are profiled, and defaults of generated graphs."""

from enum import StrEnum
from pathlib import Path

from pydantic import Field

from dynamo_shared.api.engines.images import REPOSITORY
from dynamo_shared.runtime.settings.base import Duration, Section


class DatabaseMode(StrEnum):
    """Data that AI Configurator estimates from."""

    SILICON = "SILICON"
    HYBRID = "HYBRID"


class Rapid(Section):
    """Rapid profiling: AI Configurator in worker processes of the profiler."""

    processes: int = Field(2, ge=1, le=32, description="Maximum worker processes; they start when there is work.")
    memory_mib: int = Field(
        1536,
        ge=512,
        le=65536,
        description="Maximum resident memory of a worker process, MiB; above it, the process is killed.",
    )
    time_limit: Duration = Field(300.0, ge=5, description="Time limit of profiling one request, without waiting.")
    idle: Duration = Field(600.0, ge=1, description="How long an idle worker process is kept.")
    niceness: int = Field(10, ge=0, le=19, description="`nice` value of worker processes.")
    waiting: int = Field(64, ge=1, le=4096, description="Maximum parts of requests that wait for a worker process.")
    cache_entries: int = Field(256, ge=0, le=65536, description="Maximum cached sweeps.")
    cache_dir: Path | None = Field(
        None, description="Directory where cached sweeps survive a restart; unset: cached only in memory."
    )
    models_dir: Path | None = Field(
        None,
        description="Directory with `<organisation>/<model>/config.json` of models that AI Configurator does not know.",
    )
    download: bool = Field(
        False, description="Whether config.json of an unknown model is downloaded from Hugging Face ($HF_TOKEN)."
    )
    database: DatabaseMode = Field(
        DatabaseMode.SILICON,
        description="`SILICON`: only measured data. `HYBRID`: estimates where no measured data exist.",
    )


class Thorough(Section):
    """Thorough profiling: a Job that measures engines on the cluster."""

    time_limit: Duration = Field(4 * 3600.0, ge=60, description="Time limit of measuring one request.")
    gpu_hours: float = Field(
        0.0, ge=0, description="Maximum GPU hours of one request, summed over its GPUs; 0: no limit."
    )


class Prometheus(Section):
    """The Prometheus that SLA planning reads. The PlannerConfig of a graph may name another one."""

    endpoint: str = Field(
        "",
        pattern=r"^(https?://[^/@\s?#]+(/[^@\s?#]*)?)?$",
        description="`http://host:9090`; empty: `infrastructure.prometheusEndpoint`.",
    )
    token_file: Path | None = Field(
        None, description="File with the bearer token for `endpoint`; never sent to another server."
    )
    ca_file: Path | None = Field(None, description="Trusted CA certificates, PEM file; unset: those of the system.")
    verify: bool = Field(True, description="Whether the server's certificate is verified.")
    extra_query_params: dict[str, str] = Field({}, description="Additional parameters of each query.")
    own_endpoints: bool = Field(True, description="Whether a PlannerConfig may name another Prometheus.")
    files_dir: Path | None = Field(
        None,
        description="Directory of the token and CA files that a PlannerConfig may name; unset: it must not name files.",
    )


class Dcgm(Section):
    """DCGM exporters, which report the GPUs of nodes without GPU labels. The defaults are those of NVIDIA's GPU operator."""

    namespaces: tuple[str, ...] = Field(
        ("gpu-operator", "nvidia-gpu-operator"),
        description="Namespaces of the exporters; empty: exporters are not read.",
    )
    service_accounts: tuple[str, ...] = Field(
        ("nvidia-dcgm-exporter",),
        description="ServiceAccounts of the exporters' pods; pods with another one are not read.",
    )


class RuntimeNats(Section):
    """NATS of the Dynamo runtime, where the planner reads metrics of engines. It publishes nothing there."""

    servers: tuple[str, ...] = Field(
        (), description="Servers, `nats://host:4222`, tried in order; empty: `infrastructure.natsAddress`."
    )
    ca_file: Path | None = Field(None, description="Trusted CA certificates, PEM file; unset: those of the system.")
    cert_file: Path | None = Field(None, description="Client certificate, PEM file.")
    key_file: Path | None = Field(None, description="Key of the client certificate, PEM file.")
    user: str = Field("", description="User name.")
    password_file: Path | None = Field(None, description="File with the password.")
    token_file: Path | None = Field(None, description="File with a token, instead of user and password.")
    nkey_seed_file: Path | None = Field(None, description="File with an NKey seed, instead of user and password.")
    creds_file: Path | None = Field(None, description="Credentials file (JWT), instead of user and password.")


class Planner(Section):
    """The profiler and the planner."""

    gpu_cap: int = Field(32, ge=1, description="Maximum GPUs of a request that sets no number.")
    image_repository: str = Field(
        REPOSITORY,
        min_length=1,
        description="Repository of the images of engines and of the profiler, for requests that name no image.",
    )
    model_secret: str = Field(
        "hf-token-secret",
        description="Secret with HF_TOKEN that generated graphs refer to; it need not exist. Empty: no Secret.",
    )
    pareto_points: int = Field(16, ge=1, le=32, description="Maximum graphs of the Pareto front in a result.")
    rapid: Rapid = Rapid()
    thorough: Thorough = Thorough()
    prometheus: Prometheus = Prometheus()
    dcgm: Dcgm = Dcgm()
    runtime_nats: RuntimeNats = RuntimeNats()
