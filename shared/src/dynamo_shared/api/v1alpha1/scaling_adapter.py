"""DynamoGraphDeploymentScalingAdapter in v1alpha1."""

from typing import Literal

from pydantic import Field

from dynamo_shared.api.meta import ObjectMeta, StatusCondition
from dynamo_shared.api.model import ApiModel, Int32, Timestamp


class ServiceReference(ApiModel):
    """A service of a graph."""

    name: str = Field(min_length=1)
    """DynamoGraphDeployment in the same namespace."""
    service_name: str = Field(min_length=1)
    """Service of the graph, by its key in spec.services."""


class ScalingAdapterSpec(ApiModel):
    """Desired replicas."""

    dgd_ref: ServiceReference
    """Service that the adapter scales."""
    replicas: Int32 = Field(ge=0)
    """Desired replicas of the service; kubectl scale, an autoscaler or the planner writes them."""


class ScalingAdapterStatus(ApiModel):
    """Replicas as autoscalers read them."""

    replicas: Int32 | None = None
    """Current replicas: pods, or groups of pods if a replica has several."""
    selector: str | None = None
    """Label selector of the service's pods, as a query string."""
    last_scale_time: Timestamp | None = None
    """Time of the adapter's last change of the graph."""
    conditions: list[StatusCondition] | None = None
    """Synced: the graph has the adapter's number. Conflict: another writer sets it, too. Autoscaling: if requested."""


class DynamoGraphDeploymentScalingAdapter(ApiModel):
    """Replicas of one service of a graph, scaled by HPA, KEDA, the planner or kubectl scale."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoGraphDeploymentScalingAdapter"] = "DynamoGraphDeploymentScalingAdapter"
    metadata: ObjectMeta
    spec: ScalingAdapterSpec | None = None
    """Desired replicas."""
    status: ScalingAdapterStatus | None = None
    """Replicas as autoscalers read them, written by the platform."""
