"""The `platform.modelDiscovery.workers` section: sources of Dynamo's own discovery records."""

from pathlib import Path

from pydantic import Field

from dynamo_shared.runtime.settings.addresses import Address, Tls
from dynamo_shared.runtime.settings.base import Section


class WorkerDiscovery(Section):
    """Sources of Dynamo's own discovery records, next to DynamoWorkerMetadata. All are only read."""

    enabled: bool = Field(True, description="Whether workers and models are published.")
    etcd_endpoints: tuple[Address, ...] = Field(
        (),
        description="Endpoints of Dynamo's etcd, tried in order; empty: `infrastructure.etcdAddress`, if set.",
    )
    etcd_tls: Tls = Tls()
    etcd_user: str = Field("", description="User name; it needs only read access to `v1/`.")
    etcd_password_file: Path | None = Field(None, description="File with the password.")
    file_directory: Path | None = Field(
        None, description="Directory of file-based discovery (DYN_FILE_KV) on the workers' machine, for development."
    )
