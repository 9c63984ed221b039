"""The `platform.planner` section: how requests are profiled, and what generated graphs are made of."""

from enum import StrEnum
from pathlib import Path

from pydantic import Field

from dynamo_shared.runtime.settings.base import Duration, Section


class DatabaseMode(StrEnum):
    """What AI Configurator may estimate from."""

    SILICON = "SILICON"
    HYBRID = "HYBRID"


class Rapid(Section):
    """Rapid profiling: AI Configurator in worker processes of the profiler."""

    processes: int = Field(2, ge=1, le=32, description="Worker processes at most; they start when there is work.")
    memory_mib: int = Field(
        1536, ge=512, le=65536, description="Resident memory of one worker process at most, MiB; above it, it is ended."
    )
    time_limit: Duration = Field(300.0, ge=5, description="How long one request may be profiled, waiting not counted.")
    idle: Duration = Field(600.0, ge=1, description="How long a worker process without work is kept warm.")
    niceness: int = Field(10, ge=0, le=19, description="How far worker processes step back behind the services.")
    waiting: int = Field(64, ge=1, le=4096, description="Parts of requests that wait for a worker process at most.")
    cache_entries: int = Field(256, ge=0, le=65536, description="Sweeps that are remembered.")
    cache_dir: Path | None = Field(
        None, description="Folder in which they outlive the process; unset: they are only held in memory."
    )
    models_dir: Path | None = Field(
        None,
        description="Folder with `<organisation>/<model>/config.json` of models that AI Configurator does not know.",
    )
    download: bool = Field(
        False, description="Whether config.json of an unknown model is asked of Hugging Face ($HF_TOKEN)."
    )
    database: DatabaseMode = Field(
        DatabaseMode.SILICON, description="SILICON: measured figures alone. HYBRID: estimates where none were measured."
    )


class Thorough(Section):
    """Thorough profiling: a Job that measures engines on the cluster."""

    time_limit: Duration = Field(4 * 3600.0, ge=60, description="How long one request may be measured.")
    gpu_hours: float = Field(
        0.0, ge=0, description="Hours of GPUs that one request may take, all its GPUs counted; 0: as many as it needs."
    )


class Prometheus(Section):
    """Where SLA planning reads the traffic of graphs. A graph's PlannerConfig may name another Prometheus."""

    endpoint: str = Field(
        "",
        pattern=r"^(https?://[^/@\s?#]+(/[^@\s?#]*)?)?$",
        description="`http://host:9090`; empty: `infrastructure.prometheusEndpoint`.",
    )
    token_file: Path | None = Field(None, description="File with a bearer token for it; never sent to any other.")
    ca_file: Path | None = Field(None, description="Authorities to trust, PEM; unset: the system's.")
    verify: bool = Field(True, description="Whether its certificate is checked.")
    extra_query_params: dict[str, str] = Field({}, description="Parameters that each query has besides.")
    own_endpoints: bool = Field(True, description="Whether a PlannerConfig may name a Prometheus of its own.")
    files_dir: Path | None = Field(
        None,
        description="Folder in which token and CA files that a PlannerConfig names must be; unset: it may name none.",
    )


class Dcgm(Section):
    """DCGM exporters, which are asked for GPUs where nodes have no labels. The defaults are those of NVIDIA's GPU operator."""

    namespaces: tuple[str, ...] = Field(
        ("gpu-operator", "nvidia-gpu-operator"), description="Namespaces whose exporters are asked; none where empty."
    )
    service_accounts: tuple[str, ...] = Field(
        ("nvidia-dcgm-exporter",),
        description="ServiceAccounts of the exporters' pods; a pod with another one is not asked, whatever its labels.",
    )


class RuntimeNats(Section):
    """NATS of the Dynamo runtime, from which the planner reads what engines do. It publishes nothing there."""

    servers: tuple[str, ...] = Field(
        (), description="`nats://host:4222`, tried in turn; empty: `infrastructure.natsAddress`."
    )
    ca_file: Path | None = Field(None, description="Authorities to trust, PEM; unset: the system's.")
    cert_file: Path | None = Field(None, description="Client certificate, PEM.")
    key_file: Path | None = Field(None, description="Its key, PEM.")
    user: str = Field("", description="User name.")
    password_file: Path | None = Field(None, description="File that holds the password.")
    token_file: Path | None = Field(None, description="File that holds a token, instead of user and password.")
    nkey_seed_file: Path | None = Field(None, description="NKey seed, instead of user and password.")
    creds_file: Path | None = Field(None, description="Credentials file (JWT), instead of user and password.")


class Planner(Section):
    """The profiler and the planner."""

    gpu_cap: int = Field(32, ge=1, description="GPUs at most that a request plans for where it does not say how many.")
    image_repository: str = Field(
        "nvcr.io/nvidia/ai-dynamo",
        min_length=1,
        description="Where images of engines are pulled from where a request names no image.",
    )
    model_secret: str = Field(
        "hf-token-secret",
        description="Secret with HF_TOKEN that generated graphs refer to; it may be missing. Empty: none.",
    )
    pareto_points: int = Field(16, ge=1, le=32, description="Graphs of the Pareto front that a result holds at most.")
    rapid: Rapid = Rapid()
    thorough: Thorough = Thorough()
    prometheus: Prometheus = Prometheus()
    dcgm: Dcgm = Dcgm()
    runtime_nats: RuntimeNats = RuntimeNats()
