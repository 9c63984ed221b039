"""Types and checks of documents within objects and variables that have no schema in Kubernetes.

`contract_errors(name, value)` and `contract_warnings(name, value)` check a value; services read a value with its type.
"""

from typing import Any

from dynamo_shared.api.contracts import checking
from dynamo_shared.api.contracts.autoscaling import Autoscaling, ComponentAutoscaling
from dynamo_shared.api.contracts.contract import Contract
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.contracts.table import CONTRACTS
from dynamo_shared.api.errors import FieldError

__all__ = [
    "CONTRACTS",
    "Autoscaling",
    "ComponentAutoscaling",
    "Contract",
    "PlannerConfig",
    "contract_errors",
    "contract_warnings",
]

_BY_NAME = {contract.name: contract for contract in CONTRACTS}


def contract_errors(name: str, value: Any) -> list[FieldError]:
    """Errors that must be fixed before a value can be used: types, bounds, rules between fields.

    Unknown keys are not errors: another version of the program may know them. KeyError for an unknown contract.
    """
    return checking.errors(_BY_NAME[name].model, value)


def contract_warnings(name: str, value: Any) -> list[FieldError]:
    """Settings that are allowed but probably mistakes: unknown keys, older names, settings without effect."""
    return checking.warnings(_BY_NAME[name].model, value)
