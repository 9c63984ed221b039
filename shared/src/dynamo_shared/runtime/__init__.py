"""What a service runs on: settings, life cycle, work queue, health, metrics, traces, logs."""

from dynamo_shared.runtime.controller import Controller
from dynamo_shared.runtime.health import Health, HealthState
from dynamo_shared.runtime.lifecycle import Running, running
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.service import Service, ServiceContext
from dynamo_shared.runtime.settings import InvalidSettings, Settings, load_settings
from dynamo_shared.runtime.workqueue import Result, WorkQueue

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
