"""The Volcano scheduler: pods of a graph wait in the queue that the graph's annotation names.

Volcano itself creates their PodGroups; on Grove, Grove creates them.
"""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import KAI_SCHEDULER_QUEUE, VOLCANO_POD_QUEUE, VOLCANO_QUEUE
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment

from dynamo_pod_builder.render.config import RenderConfig
from dynamo_pod_builder.render.errors import RenderError

SCHEDULER = "volcano"


def volcano_queue(graph: DynamoGraphDeployment, config: RenderConfig) -> str:
    """The Volcano queue that a graph's annotation names, or "". Raises RenderError if the graph also names a KAI queue."""
    if not config.volcano:
        return ""
    queue = graph.metadata.annotations.get(VOLCANO_QUEUE, "").strip()
    if queue and graph.metadata.annotations.get(KAI_SCHEDULER_QUEUE, "").strip():
        raise RenderError(
            "",
            f"metadata.annotations[{VOLCANO_QUEUE}]",
            f"a pod has one scheduler, and {KAI_SCHEDULER_QUEUE} selects another scheduler",
            "remove one of the two annotations",
        )
    return queue


def in_queue(template: KubeObject, queue: str) -> KubeObject:
    """A pod template whose pods wait in a Volcano queue, unless it names another scheduler."""
    pod, metadata = template.get("spec") or {}, template.get("metadata") or {}
    if not queue or (pod.get("schedulerName") or SCHEDULER) != SCHEDULER:
        return template
    annotations = {VOLCANO_POD_QUEUE: queue, **(metadata.get("annotations") or {})}
    return {
        **template,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**pod, "schedulerName": SCHEDULER},
    }
