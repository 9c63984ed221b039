"""Endpoint picker: how the gateway selects among the workers of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema

from dynamo_shared.api.model import PRESERVE_UNKNOWN, ApiModel, Bool, Int, Number, as_written
from dynamo_shared.api.rules import Violations, rule, validations


class ConfigMapKey(ApiModel):
    """A key of a ConfigMap in the same namespace."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    key: str
    """Key in the ConfigMap."""
    name: str = ""
    """Name of the ConfigMap."""
    optional: Bool | None = None
    """Whether the ConfigMap or its key may be missing."""


class PickerPlugin(ApiModel):
    """A plugin of the picker."""

    type: str
    """Type of the plugin."""
    name: str | None = None
    """Name that profiles refer to; the type by default."""
    parameters: Annotated[Any, WithJsonSchema({PRESERVE_UNKNOWN: True})] = None
    """Parameters of the plugin, in the plugin's own form."""


class ProfilePlugin(ApiModel):
    """Use of a plugin in a scheduling profile."""

    plugin_ref: str
    """Name of a plugin in the list above."""
    weight: Int | None = None
    """Weight of the plugin, if it is a scorer."""


class SchedulingProfile(ApiModel):
    """Plugins that select an endpoint together."""

    name: str
    """Name of the profile."""
    plugins: list[ProfilePlugin]
    """Plugins in the order of their calls."""


class SaturationDetector(ApiModel):
    """When endpoints count as saturated."""

    queue_depth_threshold: Int | None = None
    """Number of waiting requests at which an endpoint is saturated."""
    kv_cache_util_threshold: Number | None = None
    """Used part of the KV cache, 0 to 1, at which an endpoint is saturated."""
    metrics_staleness_threshold: str | None = None
    """Age at which metrics are ignored, such as 200ms."""


class EndpointPickerConfig(ApiModel):
    """EndpointPickerConfig of the Gateway API inference extension; fields not listed here are passed on unchanged."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={PRESERVE_UNKNOWN: True})

    api_version: str | None = None
    """API version of the configuration; set by default."""
    kind: str | None = None
    """EndpointPickerConfig; set by default."""
    feature_gates: list[str] | None = None
    """Experimental features to enable."""
    plugins: list[PickerPlugin]
    """Plugins with their parameters."""
    scheduling_profiles: list[SchedulingProfile]
    """Scheduling profiles."""
    saturation_detector: SaturationDetector | None = None
    """When endpoints count as saturated."""


if TYPE_CHECKING:
    InlinePickerConfig = dict[str, Any]
else:
    InlinePickerConfig = as_written(EndpointPickerConfig, own=True)


@rule("has(self.configMapRef) != has(self.config)", "exactly one of configMapRef and config must be set")
def exactly_one_source(value: dict[str, Any]) -> Violations:
    """A picker has one configuration."""
    if ("configMapRef" in value) == ("config" in value):
        problem = "both are set" if "config" in value else "neither is"
        yield (), f"exactly one of configMapRef and config must be set; {problem}"


class EppConfig(ApiModel):
    """Configuration of the endpoint picker: in a ConfigMap of the user, or inline."""

    model_config = ConfigDict(json_schema_extra=validations(exactly_one_source))

    config_map_ref: ConfigMapKey | None = None
    """ConfigMap with the configuration."""
    config: InlinePickerConfig | None = Field(default=None)
    """The inline configuration; the platform creates a ConfigMap from it."""
