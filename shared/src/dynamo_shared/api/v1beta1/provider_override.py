"""Fields of Grove's objects that a graph sets in Grove's own format."""

from pydantic import Field

from dynamo_shared.api.model import ApiModel, FreeForm


class ProviderOverride(ApiModel):
    """A part of Grove's object in Grove's own format: a topologyConstraint, and minAvailable of a component."""

    api_version: str = Field(min_length=1)
    """grove.io/v1alpha1."""
    target: str | None = None
    """Type of Grove that `value` is a part of; by default it follows from the location."""
    value: FreeForm
    """Fields of that type: `topologyConstraint`; for a graph `spec.template.topologyConstraint`. For a component also
    the number of replicas that start together: `minAvailable`, or `spec.minAvailable` of a PodCliqueTemplateSpec."""
