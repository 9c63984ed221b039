"""All cases of this folder."""

from . import (
    cases_annotations,
    cases_changes,
    cases_component,
    cases_gpu_memory,
    cases_graph,
    cases_others,
    cases_pods,
    cases_provider_override,
    cases_role_pods,
    cases_running,
    cases_sidecar,
    cases_unused,
)
from .building import Case

CASES: list[Case] = [
    *cases_graph.CASES,
    *cases_provider_override.CASES,
    *cases_annotations.CASES,
    *cases_component.CASES,
    *cases_gpu_memory.CASES,
    *cases_pods.CASES,
    *cases_role_pods.CASES,
    *cases_running.CASES,
    *cases_sidecar.CASES,
    *cases_changes.CASES,
    *cases_others.CASES,
    *cases_unused.CASES,
]
