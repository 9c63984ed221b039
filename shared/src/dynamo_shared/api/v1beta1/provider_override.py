"""Fields of what Grove runs that a graph writes in Grove's own words."""

from pydantic import Field

from dynamo_shared.api.model import ApiModel, FreeForm


class ProviderOverride(ApiModel):
    """A part of the object that Grove runs, in Grove's own words: a topologyConstraint, and minAvailable of a component."""

    api_version: str = Field(min_length=1)
    """grove.io/v1alpha1."""
    target: str | None = None
    """Type of Grove that `value` is a part of; it follows from the place, and is filled in where absent."""
    value: FreeForm
    """Fields of that type: `topologyConstraint`; of a graph `spec.template.topologyConstraint`. Of a component also how many
    replicas start together: `minAvailable`, which is `spec.minAvailable` of a PodCliqueTemplateSpec."""
