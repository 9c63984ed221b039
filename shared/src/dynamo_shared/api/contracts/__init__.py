"""Types and checks of documents within objects and variables that have no schema in Kubernetes.

`checking` checks a value with its type; services read a value with its type.
"""

from dynamo_shared.api.contracts.autoscaling import Autoscaling, ComponentAutoscaling
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.contracts.table import CONTRACTS, Contract

__all__ = ["CONTRACTS", "Autoscaling", "ComponentAutoscaling", "Contract", "PlannerConfig"]
