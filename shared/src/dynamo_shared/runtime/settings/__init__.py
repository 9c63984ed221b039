"""The settings of a process: one YAML file of kind OperatorConfiguration, overridden by environment variables.

`docs/configuration.md` is generated from these types (`python -m dynamo_shared.runtime.generate`).
"""

from __future__ import annotations

from dynamo_shared.runtime.settings.loading import InvalidSettings, SettingsError, load_settings
from dynamo_shared.runtime.settings.operator import (
    CheckpointSettings,
    LeaderElectionSettings,
    LoggingSettings,
    MetricsServerSettings,
    OperatorSettings,
)
from dynamo_shared.runtime.settings.platform import (
    EtcdSettings,
    KubernetesSettings,
    NatsSettings,
    PlatformSettings,
    TlsSettings,
    TracingSettings,
)
from dynamo_shared.runtime.settings.root import API_VERSION, KIND, Settings

__all__ = [
    "API_VERSION",
    "KIND",
    "CheckpointSettings",
    "EtcdSettings",
    "InvalidSettings",
    "KubernetesSettings",
    "LeaderElectionSettings",
    "LoggingSettings",
    "MetricsServerSettings",
    "NatsSettings",
    "OperatorSettings",
    "PlatformSettings",
    "Settings",
    "SettingsError",
    "TlsSettings",
    "TracingSettings",
    "load_settings",
]
