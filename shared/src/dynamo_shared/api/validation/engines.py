"""Shared GPU memory, failover and checkpoints of engines: which combinations are allowed, and their requirements."""

from itertools import islice

from dynamo_shared.api import quantity
from dynamo_shared.api.embedded.rules.names import wrong_object_name
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.untrusted.reading import items, names_in, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import (
    ALPHA,
    BETA,
    COMPONENT,
    GRAPH,
    RuleSet,
    Violations,
    broken,
    listed,
    path,
)
from dynamo_shared.api.validation.view import ComponentView

ENGINES = RuleSet("Shared GPU memory, failover, checkpoints", (GRAPH, COMPONENT))


@ENGINES.rule("only for {type} worker, prefill or decode; {type} is {observed}: leave gpuMemoryService out")
def only_workers_share_gpu_memory(component: ComponentView, _facts: Facts) -> Violations:
    """A GPU memory service holds the weights of an engine, so only workers have one."""
    if component.gms is not None and not component.is_worker:
        observed = shown(component.type) if component.type else "not set"
        yield broken(component.gms.at, type=component.words.type, observed=observed)


_NO_GPU = "needs at least one GPU: set it in {gpus}"
_NO_GPU_COUNT = "{value} is not a number of GPUs: {field} needs a whole number, at least 1"


@ENGINES.rule(_NO_GPU, _NO_GPU_COUNT)
def shared_gpu_memory_needs_gpus(component: ComponentView, _facts: Facts) -> Violations:
    """Engines that share GPU memory, or fail over between pods, need a whole number of GPUs."""
    feature = component.gms
    if feature is None and component.failover is not None and component.failover.inter_pod:
        feature = component.failover
    if feature is None:
        return
    if (gpus := component.gpus) is None:
        yield feature.at, _NO_GPU.format(gpus=component.words.gpus)
    elif not _is_count(gpus.value):
        yield gpus.at, _NO_GPU_COUNT.format(value=shown(gpus.value), field=path(feature.at))


def _is_count(value: object) -> bool:
    """Whether a quantity is a whole number, at least 1. Invalid quantities are reported elsewhere."""
    if not isinstance(value, int | str) or isinstance(value, bool):
        return True
    number = quantity.amount_of(value)
    return number is None or (number >= 1 and number == number.to_integral_value())


_NO_SERVICE = "needs gpuMemoryService in the same mode, {mode}: failover engines get their weights from it"
_OTHER_MODE = "{mode} differs from {other} of gpuMemoryService; they must be the same"


@ENGINES.rule(_NO_SERVICE, _OTHER_MODE, of="failover")
def failover_goes_with_shared_gpu_memory(component: ComponentView, _facts: Facts) -> Violations:
    """Failover engines load no weights of their own, so they need a GPU memory service with the same mode."""
    failover, gms = component.failover, component.gms
    if failover is None:
        return
    if gms is None:
        yield failover.at, _NO_SERVICE.format(mode=failover.mode)
    elif gms.inter_pod != failover.inter_pod:
        message = _OTHER_MODE.format(mode=shown(failover.mode), other=shown(gms.mode))
        yield (*failover.at, "mode"), message


@ENGINES.rule("{shadows} is too many: intraPod has exactly 1 standby engine, interPod any number", versions=(ALPHA,))
def failover_in_a_pod_has_one_shadow(component: ComponentView, _facts: Facts) -> Violations:
    """Within a pod, exactly one engine stands by. In v1beta1 the schema allows no other number."""
    failover = component.failover
    if failover is not None and not failover.inter_pod and failover.shadows > 1:
        yield broken((*failover.at, "numShadows"), shadows=failover.shadows)


@ENGINES.rule("not allowed for {type} {observed}, which runs no engine: leave failover out", of="failover")
def only_engines_fail_over_between_pods(component: ComponentView, _facts: Facts) -> Violations:
    """Frontends, planners and endpoint pickers have no engine, so they cannot fail over."""
    failover = component.failover
    if failover is not None and failover.inter_pod and component.type in ("epp", "frontend", "planner"):
        yield broken(failover.at, type=component.words.type, observed=component.type)


@ENGINES.rule(
    "cannot be combined with gpuMemoryService, whose memory a checkpoint does not contain: leave one of the two out",
    of="checkpoint",
)
def shared_gpu_memory_is_in_no_checkpoint(component: ComponentView, facts: Facts) -> Violations:
    """An engine has either a checkpoint or a GPU memory service; a platform may allow both with DynamoCheckpoints."""
    allowed = facts.gms_snapshot and not component.takes_checkpoint
    if component.checkpoint is not None and component.gms is not None and not allowed:
        yield broken(component.checkpoint)


@ENGINES.rule("enabled: true, checkpointRef or identity must be set", versions=(BETA,), added=True, of="checkpoint")
def checkpoints_are_named_or_switched_on(component: ComponentView, _facts: Facts) -> Violations:
    """A component starts from a named checkpoint, or from a checkpoint of itself, which needs enabled: true."""
    if component.takes_checkpoint and component.start.get("enabled") is not True:
        yield broken(component.checkpoint or ())


@ENGINES.rule("cannot be combined with checkpointRef, which names an existing checkpoint: leave one of the two out")
def captures_are_of_the_component(component: ComponentView, _facts: Facts) -> Violations:
    """A component sets job only if the platform takes the checkpoint of that component."""
    start = component.start
    if component.checkpoint is not None and start.get("checkpointRef") and start.get("job") is not None:
        yield broken((*component.checkpoint, "job"))


@ENGINES.rule("{problem}", added=True, of="gpuMemoryService")  # the messages for names
def device_classes_have_names(component: ComponentView, _facts: Facts) -> Violations:
    """The DeviceClass of shared GPUs must have a valid object name."""
    if component.gms is None:
        return
    if problem := wrong_object_name(text(component.memory_service.get("deviceClassName"))):
        yield (*component.gms.at, "deviceClassName"), problem


#: Refused clients that are reported for one component. A tenant may write thousands.
_REPORTED = 10
_NO_CLIENT = "{name} is not a container of {containers}{hint}: add it there, or leave it out"
_BETWEEN_PODS = (
    "not allowed with mode {mode}: the service runs in its own pod, and no other container uses it; leave it out"
)


@ENGINES.rule(_NO_CLIENT, _BETWEEN_PODS, of="gpuMemoryService")
def clients_of_shared_memory_are_containers(component: ComponentView, _facts: Facts) -> Violations:
    """Other containers that use shared GPU memory must be in the pod of the GPU memory service."""
    named = items(component.memory_service.get("extraClientContainers"))
    if component.gms is None or not named:
        return
    at = (*component.gms.at, "extraClientContainers")
    if component.gms.inter_pod:
        yield at, _BETWEEN_PODS.format(mode=shown(component.gms.mode))
        return
    pod, pod_at = component.pod
    others = [name for name in names_in(pod.get("containers")) if name != MAIN]
    known = {MAIN, *others}
    gone = ((index, name) for index, name in enumerate(named) if isinstance(name, str) and name not in known)
    hint = f" ({listed(others)})" if others else ""
    containers = path((*pod_at[len(component.at) :], "containers"))
    for index, name in islice(gone, _REPORTED):
        yield (*at, index), _NO_CLIENT.format(name=shown(name), containers=containers, hint=hint)
