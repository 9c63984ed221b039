"""The runtime of a service: settings, life cycle, work queue, health, metrics, traces, logs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamo_shared.runtime.controller import Controller
    from dynamo_shared.runtime.health import Health, HealthState
    from dynamo_shared.runtime.invalid_settings import InvalidSettings
    from dynamo_shared.runtime.lifecycle import Running, running
    from dynamo_shared.runtime.metrics import Metrics
    from dynamo_shared.runtime.service import Service, ServiceContext
    from dynamo_shared.runtime.settings import Settings, load_settings
    from dynamo_shared.runtime.workqueue import Result, WorkQueue
else:
    from dynamo_shared.lazy import names

    __getattr__ = names(
        __name__,
        controller=("Controller",),
        health=("Health", "HealthState"),
        invalid_settings=("InvalidSettings",),
        lifecycle=("Running", "running"),
        metrics=("Metrics",),
        service=("Service", "ServiceContext"),
        settings=("Settings", "load_settings"),
        workqueue=("Result", "WorkQueue"),
    )

__all__ = [
    "Controller",
    "Health",
    "HealthState",
    "InvalidSettings",
    "Metrics",
    "Result",
    "Running",
    "Service",
    "ServiceContext",
    "Settings",
    "WorkQueue",
    "load_settings",
    "running",
]
