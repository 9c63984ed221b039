"""The `platform.modelDiscovery` section: how LoRA adapters are loaded into workers."""

from pathlib import Path

from pydantic import Field

from dynamo_shared.api.registry import ports
from dynamo_shared.runtime.settings.addresses import Address, Tls
from dynamo_shared.runtime.settings.base import Duration, Section


class WorkerDiscovery(Section):
    """Sources of Dynamo's own discovery records, next to DynamoWorkerMetadata. All are only read."""

    enabled: bool = Field(True, description="Whether workers and models are published.")
    etcd_endpoints: tuple[Address, ...] = Field(
        (), description="Endpoints of Dynamo's etcd, tried in order; empty: `infrastructure.etcdAddress`, if set."
    )
    etcd_tls: Tls = Tls()
    etcd_user: str = Field("", description="User name; it needs only read access to `v1/`.")
    etcd_password_file: Path | None = Field(None, description="File with the password.")
    file_directory: Path | None = Field(
        None, description="Directory of file-based discovery (DYN_FILE_KV) on the workers' machine, for development."
    )


class ModelDiscovery(Section):
    """How LoRA adapters are loaded into workers."""

    concurrency: int = Field(
        256,
        ge=2,
        le=1024,
        description="Maximum concurrent requests to workers; a quarter of them is for workers that failed before.",
    )
    request_timeout: Duration = Field(
        15.0, gt=0, description="Time limit of a request to a worker. Loading a large adapter must fit in."
    )
    longest_retry: Duration = Field(
        30.0, ge=0.1, description="Maximum backoff between requests to a failing worker; it begins with half a second."
    )
    probe_interval: Duration = Field(60.0, ge=0.1, description="How often the loaded adapters of a worker are read.")
    unload_within: Duration = Field(
        30.0, description="How long the deletion of a DynamoModel waits until all workers have unloaded its adapter."
    )
    unload_later: Duration = Field(
        900.0, description="How long unloading is retried after `unloadWithin`, while the pods of these workers exist."
    )
    loads_per_namespace: int = Field(
        50_000,
        ge=1,
        description="Maximum number of adapters on the workers of one namespace: 100 adapters on 500 workers are 50,000. "
        "Each takes a kibibyte of memory.",
    )
    worker_port: int = Field(ports.SYSTEM.number, ge=1, le=65535, description="Port of a worker's LoRA API.")
    proxy: str = Field(
        "",
        pattern=r"^(http://[^/@\s]+)?$",
        description="HTTP proxy to pods, `http://host:port`, if this process is outside the pod network. Proxy variables of the "
        "environment are never used.",
    )
    workers: WorkerDiscovery = WorkerDiscovery()
