"""GPUs of an engine on each of its nodes: its container counts or claims them."""

from dynamo_shared.api import gpus
from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError

_RESOURCES = "podTemplate.spec.containers[main].resources"


def gpus_of_node(container: KubeObject, context: PodContext, why: str) -> int:
    """GPUs of one node, at least one. Raises RenderError if there are none; `why` says what they are needed for.

    A number in the container's resources has priority over claims, as with the reference.
    """
    if count := gpus.count(container):
        return count
    claimed = context.claimed
    if claimed.unknown:
        raise RenderError(
            context.component,
            f"{_RESOURCES}.claims",
            f"{claimed.unknown[0]}, and {why}",
            "name existing claims that request a number of GPUs (allocationMode ExactCount)",
        )
    if not claimed.own and container.get("resources", {}).get("claims"):
        raise RenderError(
            context.component,
            f"{_RESOURCES}.claims",
            f"requests no GPU, and {why}",
            f"name claims for GPUs, or set {gpus.NVIDIA_GPU} in the limits",
        )
    if not claimed.own:
        raise RenderError(
            context.component,
            f"{_RESOURCES}.limits",
            f"requests no GPU, and {why}",
            f"set {gpus.NVIDIA_GPU} to the number of GPUs that it needs on each node, or claim GPUs",
        )
    return claimed.own
