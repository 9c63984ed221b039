"""How the pods of a graph discover each other."""

from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import DISCOVERY_BACKEND, KUBE_DISCOVERY_MODE

from dynamo_pod_builder.render.config import RenderConfig

KUBERNETES, ETCD = "kubernetes", "etcd"
PER_CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class PodDiscovery:
    """The effective backend, and whether each container of a pod registers separately."""

    backend: str
    per_container: bool = False

    @property
    def kubernetes(self) -> bool:
        """Whether pods need access to the Kubernetes API, a Service for each component, and discovery labels."""
        return self.backend == KUBERNETES

    @property
    def labels(self) -> dict[str, str]:
        """Labels by which Dynamo's Kubernetes discovery selects Services and pods."""
        if not self.kubernetes:
            return {}
        return {labels.DISCOVERY_BACKEND: KUBERNETES, labels.DISCOVERY_ENABLED: "true"}


def discovery_of(annotations: Mapping[str, str], config: RenderConfig) -> PodDiscovery:
    """Discovery by the annotations of a graph or a pod template, otherwise by the installation."""
    return PodDiscovery(
        annotations.get(DISCOVERY_BACKEND) or config.discovery_backend,
        annotations.get(KUBE_DISCOVERY_MODE) == PER_CONTAINER,
    )
