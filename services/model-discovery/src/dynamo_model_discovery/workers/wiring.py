"""The etcd of workers that the settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_shared.runtime import Settings

if TYPE_CHECKING:
    from dynamo_shared.leases.follow import EtcdOptions


def etcd_options(settings: Settings) -> EtcdOptions | None:
    """Dynamo's own etcd, or None: its address is the one that workers are given."""
    workers = settings.platform.model_discovery.workers
    endpoints = workers.etcd_endpoints or _addresses(settings.infrastructure.etcd_address)
    if not endpoints:
        return None
    # Imported here: gRPC takes 27 MiB, which those need not spend whose workers register in Kubernetes.
    from dynamo_shared.leases.follow import EtcdOptions  # noqa: PLC0415

    def password() -> str:
        # Read at each log-in, because it is rotated.
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
    """Addresses of `infrastructure.etcdAddress`, which is given to workers as ETCD_ENDPOINTS: with commas between."""
    return tuple(address for address in (part.strip() for part in text.split(",")) if address)
