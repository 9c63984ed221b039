"""DynamoGraphDeploymentScalingAdapter: the replicas of one component of a graph, which autoscalers write."""

from typing import Literal

from pydantic import Field

from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import ApiModel, Int32, Timestamp, is_empty
from dynamo_shared.api.v1beta1.status import Conditions


class ComponentReference(ApiModel):
    """A component of a graph."""

    name: str = Field(min_length=1)
    """DynamoGraphDeployment in the same namespace."""
    component_name: str = Field(min_length=1)
    """Name of a component of the graph."""


class ScalingAdapterSpec(ApiModel):
    """Desired replicas."""

    dgd_ref: ComponentReference
    """Component that the adapter scales."""
    replicas: Int32 = Field(ge=0)
    """Desired replicas of the component; kubectl scale, an autoscaler or the planner writes them."""


class ScalingAdapterStatus(ApiModel):
    """Replicas as autoscalers read them."""

    replicas: Int32
    """Current replicas: pods, or groups of pods if a replica has several."""
    selector: str | None = None
    """Label selector of the component's pods, as a query string."""
    last_scale_time: Timestamp | None = None
    """Time of the adapter's last change of the graph."""
    conditions: Conditions = Field(default_factory=list, exclude_if=is_empty)
    """Synced: the graph has the adapter's number. Conflict: another writer sets it, too. Autoscaling: if requested."""


class DynamoGraphDeploymentScalingAdapter(ApiModel):
    """Replicas of one component of a graph, scaled by HPA, KEDA, the planner or kubectl scale."""

    api_version: Literal["nvidia.com/v1beta1"] = "nvidia.com/v1beta1"
    kind: Literal["DynamoGraphDeploymentScalingAdapter"] = "DynamoGraphDeploymentScalingAdapter"
    metadata: ObjectMeta
    spec: ScalingAdapterSpec | None = None
    """Desired replicas."""
    status: ScalingAdapterStatus | None = None
    """Replicas as autoscalers read them, written by the platform."""
