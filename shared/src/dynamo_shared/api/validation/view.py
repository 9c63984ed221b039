"""What rules see of a graph and of a component: each value next to the place where its author wrote it.

Rules are written once, over these views; `alpha` and `beta` make them of either version. Values are normalised (types
and modes in v1beta1's meaning), places and `words` are those of the version written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.registry.annotations import ENABLE_GROVE
from dynamo_shared.api.rules import Location
from dynamo_shared.api.validation.reading import integer, items, mapping, text

WORKERS = frozenset({"worker", "prefill", "decode"})


@dataclass(frozen=True, slots=True)
class Words:
    """What a version calls things, for messages."""

    component: str
    components: str
    type: str
    intra_pod: str
    inter_pod: str
    topology_name: str
    gpus: str
    #: Fields of a component that switch GPU memory service and failover on.
    gms: tuple[str, ...]
    failover: tuple[str, ...]
    #: How a component hands its replicas to an adapter.
    adapter: str


class Feature(NamedTuple):
    """GPU memory service or failover of a component, where it is on. `mode` as written, `shadows` engines that wait."""

    at: Location
    inter_pod: bool
    mode: str
    shadows: int = 1


class FieldValue(NamedTuple):
    """A value and where it stands."""

    value: Any
    at: Location


@dataclass(slots=True)
class ComponentView:
    """A component: an item of spec.components, a service of spec.services, or the spec of a component deployment."""

    words: Words
    at: Location
    #: As the graph calls it; "" where it cannot be read.
    name: str
    name_at: Location
    #: In v1beta1's words; "" where none is given. Of v1alpha1, also types that v1beta1 does not know.
    type: str
    type_at: Location
    #: Engine that is named for it, by the graph or by itself.
    backend: str
    #: None where nothing is said.
    replicas: int | None
    #: Nodes of one replica.
    nodes: int
    gms: Feature | None
    failover: Feature | None
    #: Place of the checkpoint that it starts from, where it does.
    checkpoint: Location | None
    #: Whether an adapter owns the replicas.
    adapted: bool
    #: Number of GPUs of the engine as written, and where; None where it asks for none.
    gpus: FieldValue | None
    #: Annotations that a version has for the pods, or for all objects of a component.
    annotations: tuple[FieldValue, ...]
    #: Image of the engine's container.
    image: FieldValue
    spec: dict[str, Any]

    @property
    def is_worker(self) -> bool:
        """Whether it runs an engine."""
        return self.type in WORKERS

    @property
    def is_alpha(self) -> bool:
        """Whether it is a service of v1alpha1."""
        return self.words.component == "service"

    @property
    def pod(self) -> FieldValue:
        """What it says of its pods, {} for nothing."""
        if self.is_alpha:
            return FieldValue(mapping(self.spec.get("extraPodSpec")), self.field("extraPodSpec"))
        template = mapping(self.spec.get("podTemplate"))
        return FieldValue(mapping(template.get("spec")), self.field("podTemplate", "spec"))

    @property
    def main(self) -> FieldValue:
        """The engine's container, {} where it is not written."""
        pod, at = self.pod
        if self.is_alpha:
            return FieldValue(mapping(pod.get("mainContainer")), (*at, "mainContainer"))
        for index, container in enumerate(items(pod.get("containers"))):
            if mapping(container).get("name") == MAIN:
                return FieldValue(container, (*at, "containers", index))
        return FieldValue({}, at)

    def field(self, *steps: int | str) -> Location:
        """Place of a field below the component."""
        return (*self.at, *steps)


#: The schema allows 25; a list of a hundred thousand is not worth a second of everybody's time. Components.
CHECKED_COMPONENTS = 100


@dataclass(slots=True)
class GraphView:
    """A DynamoGraphDeployment."""

    version: str
    words: Words
    name: str
    namespace: str
    annotations: dict[str, Any]
    backend: str
    #: Place of the components.
    at: Location
    #: Those of the first CHECKED_COMPONENTS that can be read, in document order.
    components: tuple[ComponentView, ...]
    #: Names of all components; None where the list or map cannot be read.
    names: tuple[str, ...] | None
    spec: dict[str, Any]
    status: dict[str, Any]

    def of_grove(self, grove: bool | None) -> bool | None:
        """Whether Grove runs the graph, given whether it runs graphs at all."""
        if grove and str(self.annotations.get(ENABLE_GROVE, "")).lower() == "false":
            return False
        return grove


def feature(value: Any, at: Location, words: Words) -> Feature | None:
    """GPU memory service or failover as an object says it; None where it is not an object."""
    if not isinstance(value, dict):
        return None
    mode = value.get("mode")
    shadows = integer(value.get("numShadows"))
    return Feature(at, mode == words.inter_pod, text(mode) or words.intra_pod, 1 if shadows is None else shadows)


def gpus(resources: dict[str, Any], at: Location) -> FieldValue | None:
    """Number of GPUs in the resources of a container, limits before requests."""
    for kind in ("limits", "requests"):
        amounts = mapping(resources.get(kind))
        if amounts.get(NVIDIA_GPU) not in (None, ""):
            return FieldValue(amounts[NVIDIA_GPU], (*at, kind, NVIDIA_GPU))
    return None
