"""What an inference engine may change in its pods: the interface of all backends."""

from typing import ClassVar

from dynamo_shared.api.engines import BACKENDS
from dynamo_shared.api.engines.table import PodTraits
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.probes import PROBES

from dynamo_pod_builder.render.context import PodContext


class EngineBackend:
    """An engine that changes nothing; subclasses override methods. `context.placement`: the pod's place in its replica."""

    #: Value of `backendFramework`.
    name: ClassVar[str] = ""

    @property
    def traits(self) -> PodTraits:
        """The properties of the engine's pods in the table of backends."""
        facts = BACKENDS.get(self.name)
        return facts.pods if facts is not None else PodTraits()

    def update_container(self, container: KubeObject, context: PodContext) -> None:
        """Change the main container in place; its `env` list is not shared. Variables added here come last.

        Raises RenderError if the engine cannot get the settings that it needs.
        """

    def update_engine(self, engine: KubeObject, number: int, context: PodContext) -> None:
        """Change one of the engines of a pod in place; `number` counts from 0. They share the pod's ports and address.

        Called if the engine's traits have `fails_over`.
        """

    def update_pod(self, pod: KubeObject, context: PodContext) -> None:
        """Change the pod spec in place, after its containers and volumes are complete."""


def without_probes(container: KubeObject) -> None:
    """Remove all probes from a process that serves nothing itself."""
    for probe in PROBES:
        container.pop(probe, None)
