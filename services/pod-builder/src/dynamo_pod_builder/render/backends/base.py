"""What an inference engine may change about its pods: the interface that each backend fills in."""

from typing import ClassVar

from dynamo_shared.api.engines import BACKENDS
from dynamo_shared.api.engines.table import PodTraits
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.probes import PROBES

from dynamo_pod_builder.render.context import PodContext


class EngineBackend:
    """An engine that changes nothing; the others override what they need. `context.placement` says where a pod stands."""

    #: Word in `backendFramework`.
    name: ClassVar[str] = ""

    @property
    def traits(self) -> PodTraits:
        """What the table of backends says of the engine's pods."""
        facts = BACKENDS.get(self.name)
        return facts.pods if facts is not None else PodTraits()

    def update_container(self, container: KubeObject, context: PodContext) -> None:
        """Change the main container in place; its `env` list is its own. Variables added here follow the sorted ones.

        RenderError where the engine cannot get the settings that it needs.
        """

    def update_engine(self, engine: KubeObject, number: int, context: PodContext) -> None:
        """Change one of the engines of a pod in place, `number` counts from 0: they share the pod's ports and address.

        Called where its traits say `fails_over`.
        """

    def update_pod(self, pod: KubeObject, context: PodContext) -> None:
        """Change the pod spec in place, after its containers and volumes stand."""


def without_probes(container: KubeObject) -> None:
    """Take away all probes, of a process that serves nothing itself."""
    for probe in PROBES:
        container.pop(probe, None)
