"""Names of a graph's components and of the objects that are rendered for them. Pure."""

import re

#: Suffix, after a hyphen, of the PodClique with the leaders of a component's multi-node replicas.
LEADERS = "ldr"
#: Form of a component's name, and its length in characters.
NAME_PATTERN = r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$"
LONGEST = 63


def is_name(text: str) -> bool:
    """Whether v1beta1 allows a text as a component's name. Names of objects may also contain dots."""
    return len(text) <= LONGEST and re.fullmatch(NAME_PATTERN, text) is not None


def component_deployment(graph: str, component: str, worker_hash: str = "") -> str:
    """Name of a component's DCD, Deployment and selector, and, without a hash, of its adapter. Only workers have a hash."""
    name = f"{graph}-{component.lower()}"
    return f"{name}-{worker_hash}" if worker_hash else name


def service(component_deployment_name: str) -> str:
    """Name of a component's Service: dots, which graph names may have, are replaced."""
    return component_deployment_name.lower().replace(".", "-")


def frontend_service(graph: str, component: str) -> str:
    """Name of the Service of a graph's frontend."""
    return service(component_deployment(graph, component))
