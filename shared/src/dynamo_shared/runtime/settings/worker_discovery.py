"""The `platform.modelDiscovery.workers` section: where Dynamo's own discovery records are read."""

from pathlib import Path

from pydantic import Field

from dynamo_shared.runtime.settings.addresses import Address, Tls
from dynamo_shared.runtime.settings.base import Section


class WorkerDiscovery(Section):
    """Where Dynamo's own discovery records are read, besides DynamoWorkerMetadata. Nothing is ever written there."""

    enabled: bool = Field(True, description="Whether workers and models are published.")
    etcd_endpoints: tuple[Address, ...] = Field(
        (),
        description="Dynamo's own etcd, tried in turn; empty: that of `infrastructure.etcdAddress`, if there is one.",
    )
    etcd_tls: Tls = Tls()
    etcd_user: str = Field("", description="User name; reading `v1/` is all that it must be allowed.")
    etcd_password_file: Path | None = Field(None, description="File that holds the password.")
    file_directory: Path | None = Field(
        None, description="Directory of discovery by files (DYN_FILE_KV), for development: on the workers' machine."
    )
