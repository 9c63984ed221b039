"""Capabilities of engines, from the workers that model-discovery reports (STATE, `workers.discovery.dynamo`). Pure."""

from collections.abc import Container, Iterable

from dynamo_shared.api import objects
from dynamo_shared.api.contracts.planner import Mode
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import GPU_POWER_LIMIT
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.api.role_templates import templates
from dynamo_shared.wire.discovered import WorkerData

from dynamo_planner.core.observation import EngineCapabilities, Pool
from dynamo_planner.inputs.forward_passes import pool_of


def is_of_pool(
    worker: WorkerData, *, graph: ObjectKey, component: str, pool: Pool, mode: Mode, namespaces: Container[str]
) -> bool:
    """Whether a worker belongs to a graph's component; workers of other Kubernetes namespaces never do.

    The worker's pod decides. For workers without a known pod, only the Dynamo namespace, the runtime's component and
    the role are known.
    """
    if worker.namespace not in ("", graph.namespace):
        return False
    if worker.graph_component:
        return (worker.namespace, worker.graph_deployment, worker.graph_component) == (*graph, component)
    if worker.dynamo_namespace not in namespaces:
        return False
    roles = {"aggregated", "decode"} if mode is Mode.AGG else {pool.value}
    return worker.role in roles if worker.role else pool_of(worker.component, mode) is pool


def engines_of(workers: Iterable[WorkerData], num_gpu: int | None, watts: int | None = None) -> EngineCapabilities:
    """The capabilities that all of the engines have, and their GPUs; None if neither a model card nor the graph states
    them.
    """
    cards = [card for worker in workers for card in worker.models if not card.lora]
    return EngineCapabilities(
        num_gpu=num_gpu,
        watts=watts,
        max_num_batched_tokens=_least(card.max_num_batched_tokens for card in cards),
        max_num_seqs=_least(card.max_num_seqs for card in cards),
        context_length=_least(card.context_length for card in cards),
        max_kv_tokens=_least(card.max_kv_tokens for card in cards),
    )


def _least(values: Iterable[int]) -> int | None:
    """The smallest positive value: 0 means that a card lacks the value."""
    return min((value for value in values if value > 0), default=None)


#: No GPU draws a megawatt.
_DIGITS = 6


class UnknownPowerError(Exception):
    """A pod template does not state the power limit of its GPUs; the message names the remedy."""


def gpu_watts(component: KubeObject) -> int:
    """Power limit in watts of each GPU of a component (v1beta1): the highest of its pod templates.
    UnknownPowerError.
    """
    return max(_of(component["name"], template) for template, _ in templates(component))


def _of(component: str, template: KubeObject) -> int:
    value = objects.annotations(template).get(GPU_POWER_LIMIT)
    text = "" if value is None else str(value).strip()
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text):
        return int(text)
    problem = "is missing" if value is None else f"is {shown(value)}"
    raise UnknownPowerError(
        f"annotation {GPU_POWER_LIMIT} in the podTemplate of {component} {problem}; it must be the watts that each GPU may draw, "
        "such as '500'"
    )
