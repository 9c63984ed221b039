"""Settings: one YAML file of kind OperatorConfiguration, overridden by environment variables.

The reference's fields keep their names, types and defaults (operator behaviour, section 10); `platform` is added.
"""

from dynamo_shared.runtime.invalid_settings import InvalidSettings
from dynamo_shared.runtime.settings.loading import load_settings
from dynamo_shared.runtime.settings.operator import OperatorConfiguration as Settings
from dynamo_shared.runtime.settings.platform import Nats, Platform

__all__ = ["InvalidSettings", "Nats", "Platform", "Settings", "load_settings"]
