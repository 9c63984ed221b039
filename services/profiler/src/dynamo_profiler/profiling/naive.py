"""A deployment chosen by GPU memory only, if nothing can be simulated: the smallest engine that holds the weights.

The rule is AI Configurator's naive mode: 1.5 times the weights must fit, so that a third of the memory remains for the
KV cache and everything else.
"""

from dataclasses import dataclass
from math import ceil

from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.gpus import words as gpu_words

from dynamo_profiler.profiling.models import KnownFrom, ModelArchitecture
from dynamo_profiler.profiling.objective import AGG, DISAGG, Picking, ServingObjective
from dynamo_profiler.profiling.points import DECODE, PREFILL, WORKER, Layout
from dynamo_profiler.profiling.results import ProfilingFailed, Remark

_ROOM = 1.5
"""Memory that an engine needs, as a multiple of its weights."""
_MIB = 1024 * 1024
NAIVE = "NaiveConfiguration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Naive:
    """A layout with its remarks."""

    layout: Layout
    remarks: tuple[Remark, ...]


def naive(model: ModelArchitecture, objective: ServingObjective, why: str) -> Naive:
    """The smallest engine that holds the model, as often as the GPUs allow. `why`: the reason for no simulation.

    Raises ProfilingFailed if the model does not fit, or if the planner needs figures that do not exist.
    """
    engine = _engine(model, objective)
    if objective.planner is not None and objective.planner.throughput_scaling:
        raise ProfilingFailed(
            "NoFiguresForThroughputScaling",
            f"spec.features.planner: throughput scaling needs figures of the engines, but {why}; set "
            "enable_throughput_scaling: false and enable_load_scaling: true, or use searchStrategy thorough",
        )
    roles, remark = _roles(engine, objective)
    layout = Layout(
        backend=objective.backends[0],
        serving=AGG if roles == (WORKER,) else DISAGG,
        engines=dict.fromkeys(roles, engine),
        replicas=_replicas(roles, engine, objective),
    )
    text = (
        f"{why}; {layout.words} on {layout.backend} chosen by GPU memory only ({_weights(model)}), "
        f"without an estimate for {objective.words()}"
    )
    return Naive(layout=layout, remarks=(Remark(reason=NAIVE, message=text), *remark))


def _engine(model: ModelArchitecture, objective: ServingObjective) -> EngineLayout:
    node = 1 << (min(objective.gpus_per_node, objective.total_gpus).bit_length() - 1)
    if model.weights_bytes is None:
        return EngineLayout(tp=node, gpus=node)
    if not objective.vram_mib:
        raise ProfilingFailed(
            "HardwareUnknown",
            f"spec.hardware.vramMb: required, because the memory size of {objective.gpu_sku} is not known: set "
            "the memory of one GPU",
        )
    needed = model.weights_bytes * _ROOM
    of_one = objective.vram_mib * _MIB
    tp = 1
    while tp < node and tp * of_one < needed:
        tp *= 2
    # An engine that spans nodes has pipeline stages: tensor-parallel ranks need the fast links within a node.
    pp = max(1, ceil(needed / (tp * of_one)))
    if tp * pp > objective.total_gpus:
        raise ProfilingFailed(
            "ModelDoesNotFit",
            f"{model.name} needs {gpu_words(ceil(needed / of_one))} of {objective.vram_mib:g} MiB or more "
            f"({_weights(model)}, and half as much for the KV cache), but has {objective.total_gpus}; "
            "set more or larger GPUs in spec.hardware, or use a quantized model",
        )
    return EngineLayout(tp=tp, pp=pp, gpus=tp * pp)


def _roles(engine: EngineLayout, objective: ServingObjective) -> tuple[tuple[str, ...], tuple[Remark, ...]]:
    """Aggregated, unless a planner must scale both roles."""
    if objective.planner is None or objective.servings == (AGG,):
        return (WORKER,), ()
    if 2 * engine.gpus <= objective.total_gpus:
        return (PREFILL, DECODE), ()
    text = (
        f"{gpu_words(objective.total_gpus)} are too few for a prefill and a decode engine with {engine.gpus} each; one pool "
        "serves both (mode agg)"
    )
    return (WORKER,), (Remark(reason="PlannerModeChanged", message=text),)


def _replicas(roles: tuple[str, ...], engine: EngineLayout, objective: ServingObjective) -> dict[str, int]:
    if objective.picking is Picking.AUTOSCALE:
        return objective.endpoints(dict.fromkeys(roles, engine))
    fits = objective.total_gpus // engine.gpus
    if roles == (WORKER,):
        return {WORKER: fits}
    return {PREFILL: max(1, fits // 2), DECODE: max(1, fits - fits // 2)}


def _weights(model: ModelArchitecture) -> str:
    if model.weights_bytes is None:
        return "the model's name has no number of parameters, so an engine takes a whole node"
    size = f"{model.weights_bytes / 1024**3:.1f} GiB of weights"
    return size if model.known is not KnownFrom.NAME else f"{size}, guessed from the name"
