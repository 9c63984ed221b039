"""Ownership and leadership of this process's services: through etcd if it is configured, otherwise trivial."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime.health import Health
from dynamo_shared.runtime.leasing.base import Leasing
from dynamo_shared.runtime.leasing.standby import by_kubernetes, stands_by
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings import Settings

__all__ = ["Leasing", "leasing"]


def leasing(
    settings: Settings,
    kube: KubeClient,
    health: Health,
    metrics: Metrics,
    *,
    kind: str = "platform",
    connected: Callable[[], bool] = lambda: True,
) -> AbstractAsyncContextManager[Leasing]:
    """The leasing that the settings select. At the end everything held is released, so that other replicas need not
    wait.

    `kind`: what this process works on; other replicas of the same kind take over if the API server does not answer, or
    NATS is not `connected`.
    """
    if settings.platform.shares_work:
        # Imported here: gRPC takes 27 MiB, which a single replica does not need.
        from dynamo_shared.runtime.leasing.etcd import by_etcd  # noqa: PLC0415

        return by_etcd(settings, kube, health, metrics, kind=kind, connected=connected)
    return by_kubernetes(settings, kube, health, metrics) if stands_by(settings) else nullcontext(Leasing())
