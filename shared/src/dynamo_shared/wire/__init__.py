"""What is said over NATS: subjects, envelopes, and the data of every event and command. `proto/` is made of it."""

from dynamo_shared.wire.specifications import (
    CommandResult,
    ResyncData,
    ScaleData,
    ScaleTarget,
    checkpoint_data,
    component_deployment_data,
    deployment_data,
)

__all__ = [
    "CommandResult",
    "ResyncData",
    "ScaleData",
    "ScaleTarget",
    "checkpoint_data",
    "component_deployment_data",
    "deployment_data",
]
