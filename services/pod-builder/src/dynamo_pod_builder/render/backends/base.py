"""What an inference engine may change about its pods: the interface that each backend fills in."""

from __future__ import annotations

from typing import Any, ClassVar

from dynamo_pod_builder.render.context import PodContext

KubeObject = dict[str, Any]


class Backend:
    """An engine that changes nothing; the others override what they need."""

    #: Word in `backendFramework`.
    name: ClassVar[str] = ""
    #: Where the engine keeps what it compiled; "" where the user must say.
    compilation_cache_path: ClassVar[str] = ""

    def update_container(self, container: KubeObject, context: PodContext) -> None:
        """Change the main container in place; its `env` list is its own. Variables added here follow the sorted ones."""

    def update_pod(self, pod: KubeObject, context: PodContext) -> None:
        """Change the pod spec in place, after its containers and volumes stand."""
