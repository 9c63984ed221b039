"""The KAI scheduler: the queue in which the pods of a graph on Grove wait."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import KAI_SCHEDULER_QUEUE
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment

from dynamo_pod_builder.render.config import RenderConfig
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.workloads.volcano import volcano_queue

SCHEDULER = "kai-scheduler"
DEFAULT_QUEUE = "dynamo"


def queue_of(graph: DynamoGraphDeployment, config: RenderConfig) -> str:
    """The queue that a graph's annotation names, or the default one; "" without KAI, or if a Volcano queue is set.

    Raises RenderError for a queue that does not exist.
    """
    if config.kai_queues is None or volcano_queue(graph, config):
        return ""
    queue = graph.metadata.annotations.get(KAI_SCHEDULER_QUEUE, "").strip() or DEFAULT_QUEUE
    if queue not in config.kai_queues:
        known = ", ".join(sorted(config.kai_queues)) or "none"
        raise RenderError(
            "",
            f"metadata.annotations[{KAI_SCHEDULER_QUEUE}]",
            f"the KAI scheduler has no queue {queue!r}; there are: {known}",
            "create the queue, or name another queue",
        )
    return queue


def wait_in(clique: KubeObject, queue: str) -> None:
    """Let the pods of a clique wait in a queue, unless their template names another scheduler."""
    pod = clique["spec"]["podSpec"]
    if queue and (pod.get("schedulerName") or SCHEDULER) == SCHEDULER:
        pod["schedulerName"] = SCHEDULER
        clique["labels"][labels.KAI_QUEUE] = queue
