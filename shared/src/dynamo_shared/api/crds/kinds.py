"""Every kind of the platform with its versions, and what `kubectl get` shows of it."""

from __future__ import annotations

from dynamo_shared.api import resources, v1beta1
from dynamo_shared.api.crds.definition import Column, Definition, Scale, VersionDefinition


def _condition(column: str, condition: str, description: str) -> Column:
    return Column(column, f'.status.conditions[?(@.type=="{condition}")].status', description)


_BACKEND = Column("Backend", ".spec.backendFramework", "Inference engine of the workers")
_AGE = Column("Age", ".metadata.creationTimestamp", "Time since creation", type="date")

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        ("dgd",),
        (
            VersionDefinition(
                resources.DYNAMO_GRAPH_DEPLOYMENTS,
                v1beta1.DynamoGraphDeployment,
                (
                    _condition("Ready", "Ready", "Whether all components are ready"),
                    Column("State", ".status.state", "initializing, pending, successful or failed"),
                    _BACKEND,
                    _AGE,
                ),
            ),
        ),
    ),
    Definition(
        ("dcd",),
        (
            VersionDefinition(
                resources.DYNAMO_COMPONENT_DEPLOYMENTS,
                v1beta1.DynamoComponentDeployment,
                (_condition("Available", "Available", "Whether the component serves"), _BACKEND, _AGE),
                # Beyond the reference: a component that stands alone is scaled like a Deployment.
                scale=Scale(".spec.replicas", ".status.component.replicas"),
            ),
        ),
    ),
)
