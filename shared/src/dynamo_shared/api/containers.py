"""Containers of pod templates, and the main container of a component. Accepts any value, and does not modify it."""

from collections.abc import Callable
from typing import Any

from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.untrusted.reading import items, mapping

#: Fields of a container, and of a pod, that authors write on a component by mistake.
CONTAINER_FIELDS = ("args", "command", "image", "ports", "startupProbe", "workingDir")
POD_FIELDS = ("affinity", "containers", "imagePullSecrets", "initContainers", "nodeSelector", "tolerations", "volumes")


def containers_of(template: Any) -> list[Any]:
    """Containers of a pod template, without its init containers."""
    return items(mapping(mapping(template).get("spec")).get("containers"))


def is_main(container: Any) -> bool:
    """Whether a container runs the component's own process."""
    return mapping(container).get("name") == MAIN


def main_container(template: Any) -> KubeObject | None:
    """The container that runs the component's own process; None if the template does not have it."""
    return next(filter(is_main, containers_of(template)), None)


def with_containers(template: Any, change: Callable[[list[Any]], list[Any]]) -> Any:
    """A pod template with changed containers; unchanged if it has none."""
    containers = containers_of(template)
    return {**template, "spec": {**template["spec"], "containers": change(containers)}} if containers else template


def with_main(template: Any, change: Callable[[KubeObject], KubeObject]) -> Any:
    """A pod template with a changed main container; unchanged without one."""
    return with_containers(template, lambda listed: [change(each) if is_main(each) else each for each in listed])
