"""The `platform.modelDiscovery` section: how workers are asked to load LoRA adapters."""

from pydantic import Field

from dynamo_shared.api.registry import ports
from dynamo_shared.runtime.settings.base import Duration, Section
from dynamo_shared.runtime.settings.worker_discovery import WorkerDiscovery


class ModelDiscovery(Section):
    """How workers are asked to load LoRA adapters, and for how long."""

    concurrency: int = Field(
        256,
        ge=2,
        le=1024,
        description="Workers that are asked at the same time; a quarter of the places is for workers that failed before.",
    )
    request_timeout: Duration = Field(
        15.0, gt=0, description="How long a worker may take to answer; loading a large adapter counts."
    )
    longest_retry: Duration = Field(
        30.0, ge=0.1, description="Pause between two tries of a worker that keeps failing; the first is half a second."
    )
    probe_interval: Duration = Field(60.0, ge=0.1, description="How often a worker is asked what it has loaded.")
    unload_within: Duration = Field(
        30.0, description="How long the deletion of a DynamoModel waits for workers that do not unload its adapter."
    )
    unload_later: Duration = Field(
        900.0, description="How long unloading is retried after that, while their pods exist."
    )
    worker_port: int = Field(ports.SYSTEM.number, ge=1, le=65535, description="Port of a worker's LoRA management.")
    proxy: str = Field(
        "",
        pattern=r"^(http://[^/@\s]+)?$",
        description="HTTP proxy by which pods are reached, `http://host:port`, where this process is outside their network; "
        "proxies of the environment are never used.",
    )
    workers: WorkerDiscovery = WorkerDiscovery()
