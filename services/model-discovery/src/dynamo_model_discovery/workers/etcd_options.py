"""The etcd of workers, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_shared.runtime import Settings

if TYPE_CHECKING:
    from dynamo_shared.leases.follow import EtcdOptions


def etcd_options(settings: Settings) -> EtcdOptions | None:
    """The options of Dynamo's own etcd, at the address that workers get; None without an address."""
    workers = settings.platform.model_discovery.workers
    endpoints = workers.etcd_endpoints or _addresses(settings.infrastructure.etcd_address)
    if not endpoints:
        return None
    # Imported here, because gRPC takes 27 MiB, which installations with workers in Kubernetes do not need.
    from dynamo_shared.leases.follow import EtcdOptions  # noqa: PLC0415

    def password() -> str:
        # Read at each login, because the password is rotated.
        file = workers.etcd_password_file
        return file.read_text().rstrip("\r\n") if file is not None else ""

    tls = workers.etcd_tls
    return EtcdOptions(
        endpoints=endpoints,
        ca_file=tls.ca_file,
        cert_file=tls.cert_file,
        key_file=tls.key_file,
        user=workers.etcd_user,
        password=password,
    )


def _addresses(text: str) -> tuple[str, ...]:
    """The comma-separated addresses of `infrastructure.etcdAddress`, which workers get as ETCD_ENDPOINTS."""
    return tuple(address for address in (part.strip() for part in text.split(",")) if address)
