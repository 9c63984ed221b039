"""What rules see of a graph and of a component: each value next to the place where its author wrote it.

Rules are written once, over these views; `alpha` and `beta` make them of either version. Values are normalised (types
and modes in v1beta1's meaning), places and `words` are those of the version written.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, NamedTuple, Self

from dynamo_shared.api.engines.started import SHELL, engines_started, is_own_launch, program_of, takes_flags
from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.objects import MAIN, RUNTIME
from dynamo_shared.api.registry.annotations import ENABLE_GROVE, WORKLOAD_PROVIDER
from dynamo_shared.api.role_templates import FIELD, LEADER, ROLES, WORKER
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import annotation, below, integer, items, mapping, nodes, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.workload_provider import OF_COMPONENTS, OF_GROVE

_COMMAND = ("command", "args")

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
    """A component: an item of spec.components, a service of spec.services, or the spec of a component deployment.

    What it says of its pods is of those that serve. `of_each_role` has the same for its other pods, where these differ.
    """

    words: Words
    at: Location
    spec: dict[str, Any]
    #: As the graph calls it; "" where it cannot be read.
    name: str
    name_at: Location
    #: In v1beta1's words; "" where none is given. Of v1alpha1, also types that v1beta1 does not know.
    type: str
    #: Engine that is named for it, by the graph or by itself.
    backend: str
    #: Place of the checkpoint that it starts from, where it does.
    checkpoint: Location | None
    #: Whether an adapter owns the replicas.
    adapted: bool
    #: Pod templates that leader or workers have of their own, by the name of the role.
    role_templates: dict[str, FieldValue] = field(init=False)
    #: None where nothing is said.
    replicas: int | None = field(init=False)
    #: Nodes of one replica.
    nodes: int = field(init=False)
    gms: Feature | None = field(init=False)
    failover: Feature | None = field(init=False)
    #: Number of GPUs of the engine as written, and where; None where it asks for none.
    gpus: FieldValue | None = field(init=False)
    #: Image of the engine's container.
    image: FieldValue = field(init=False)
    #: Engines that its command starts, where it is a worker.
    started: frozenset[str] = field(init=False)
    #: Whether Grove may run it: a component of a graph that does not opt out.
    may_be_of_grove: bool = False
    #: Whether nothing else may, as its graph says.
    must_be_of_grove: bool = False
    #: Engine that the other workers of its graph start, "" where they start none, or several.
    engine_of_graph: str = ""
    #: Role whose pods it is of. All roles have the same pods, unless one has a template of its own.
    role: str = LEADER
    #: What several rules ask, and what takes time of a long script: kept once the first has asked.
    _launch: bool | None = field(init=False, default=None, compare=False)
    _workers: Self | None = field(init=False, default=None, compare=False)

    def __post_init__(self) -> None:
        """What both versions say alike, or in the same words elsewhere."""
        self.role_templates = self._templates_of_roles()
        main, at = self.main
        self.replicas, self.nodes = integer(self.spec.get("replicas")), nodes(self.spec.get("multinode"))
        self.gms, self.failover = self._feature(self.words.gms), self._feature(self.words.failover)
        own = _gpu_fields(mapping(self.spec.get("resources")), self.field("resources")) if self.has_fields else None
        self.gpus = own or _gpus(mapping(main.get("resources")), (*at, "resources"))
        self.image = FieldValue(main.get("image"), (*at, "image") if main or self.has_fields else (*at, "containers"))
        lines = (each for field in _COMMAND for each in items(main.get(field)) if isinstance(each, str))
        self.started = engines_started(lines) if self.is_worker else frozenset()

    def _feature(self, path: tuple[str, ...]) -> Feature | None:
        """GPU memory service or failover; None where it is not an object, or v1alpha1 does not switch it on."""
        value = below(self.spec, path)
        if not isinstance(value, dict) or (self.is_alpha and value.get("enabled") is not True):
            return None
        mode, words, shadows = value.get("mode"), self.words, integer(value.get("numShadows"))
        is_inter = mode == words.inter_pod
        return Feature(self.field(*path), is_inter, text(mode) or words.intra_pod, 1 if shadows is None else shadows)

    @property
    def type_at(self) -> Location:
        """Place of its type."""
        return self.field(self.words.type)

    @property
    def is_worker(self) -> bool:
        """Whether it runs an engine."""
        return self.type in WORKERS

    @property
    def is_alpha(self) -> bool:
        """Whether it is a service of v1alpha1."""
        return self.words.component == "service"

    @property
    def engine(self) -> str:
        """Engine of its pods: the one that its command starts, else the one that is named; "" where neither says."""
        if not self.is_worker:
            return ""
        return next(iter(self.started)) if len(self.started) == 1 else self.backend or self.engine_of_graph

    def of_grove(self, grove: bool | None) -> bool | None:
        """Whether Grove runs it, given whether it runs graphs at all."""
        return self.must_be_of_grove or (grove if self.may_be_of_grove else False)

    @property
    def line(self) -> list[str]:
        """Command line of the engine's container. Without a command, the platform has a shell run the arguments."""
        main = self.main.value
        command, args = ([each for each in items(main.get(field)) if isinstance(each, str)] for field in _COMMAND)
        return [*(command or SHELL), *args]

    @property
    def program(self) -> str:
        """What its command line starts, for a message."""
        return program_of(self.line)

    @property
    def has_command(self) -> bool:
        """Whether anything is written of what the engine's container runs."""
        return any(self.main.value.get(field) for field in _COMMAND)

    @property
    def memory_service(self) -> dict[str, Any]:
        """What it says of a GPU memory service, {} for nothing."""
        return mapping(below(self.spec, self.words.gms))

    @property
    def start(self) -> dict[str, Any]:
        """What it says of the checkpoint that it starts from, {} where it starts from none."""
        return mapping(below(self.spec, self.checkpoint[len(self.at) :])) if self.checkpoint is not None else {}

    @property
    def takes_checkpoint(self) -> bool:
        """Whether a checkpoint is taken of the component itself."""
        start = self.start
        return self.checkpoint is not None and not start.get("checkpointRef") and start.get("identity") is None

    @property
    def is_forced_group(self) -> bool:
        """Whether it is to be a scaling group of Grove, whatever its replicas are made of. Of v1beta1 alone."""
        grove = mapping(mapping(self.spec.get("experimental")).get("grove"))
        return grove.get("forceScalingGroup") is True

    @property
    def takes_flags(self) -> bool:
        """Whether the platform can put flags for its engine into its command line."""
        return takes_flags(self.line) and not self.is_own_launch

    @property
    def is_own_launch(self) -> bool:
        """Whether it starts something of its author's, into which no flags can be put."""
        if self._launch is None:
            self._launch = self.has_command and is_own_launch(self.line, self.engine)
        return self._launch

    def _templates_of_roles(self) -> dict[str, FieldValue]:
        templates: dict[str, FieldValue] = {}
        for index, role in enumerate(items(self.spec.get("roles"))):
            name, template = text(mapping(role).get("name")), mapping(role).get(FIELD)
            if name in ROLES and isinstance(template, dict):
                templates.setdefault(name, FieldValue(template, self.field("roles", index, FIELD)))
        return templates

    @property
    def of_each_role(self) -> tuple[Self, ...]:
        """The component as its pods are that serve, and as its workers are, where these have another template."""
        if not self.role_templates:
            return (self,)
        if self._workers is None:
            self._workers = replace(self, role=WORKER)
        return (self, self._workers)

    @property
    def pods_of_role(self) -> int:
        """Pods of its role in one replica: of all nodes, where all roles have the same pods."""
        if not self.role_templates:
            return self.nodes
        return self.nodes - 1 if self.role == WORKER else 1

    @property
    def has_own_template(self) -> bool:
        """Whether its role has a pod template, which takes the place of the component's."""
        return self.role in self.role_templates

    @property
    def has_fields(self) -> bool:
        """Whether its pods are made of the fields of a v1alpha1 service: all of these, unless their role has a template."""
        return self.is_alpha and not self.has_own_template

    @property
    def pod(self) -> FieldValue:
        """What it says of the pods of its role, {} for nothing."""
        return self._of_template("spec", "extraPodSpec")

    @property
    def template_metadata(self) -> FieldValue:
        """Metadata of the pod template of its role, {} for none."""
        return self._of_template("metadata", "extraPodMetadata")

    def _of_template(self, part: str, field_of_alpha: str) -> FieldValue:
        """A part of the pod template of its role, {} for none; services of v1alpha1 have a field for each."""
        if self.has_fields:
            return FieldValue(mapping(self.spec.get(field_of_alpha)), self.field(field_of_alpha))
        common = FieldValue(mapping(self.spec.get(FIELD)), self.field(FIELD))
        template = self.role_templates.get(self.role, common)
        return FieldValue(mapping(template.value.get(part)), (*template.at, part))

    @property
    def template_annotations(self) -> FieldValue:
        """Annotations of the pod template of its role, {} for none."""
        metadata, at = self.template_metadata
        return FieldValue(mapping(metadata.get("annotations")), (*at, "annotations"))

    @property
    def annotations(self) -> tuple[FieldValue, ...]:
        """Annotations that a version has for all objects of a component, and for the pods of its role."""
        of_objects = FieldValue(mapping(self.spec.get("annotations")), self.field("annotations"))
        return (of_objects, self.template_annotations) if self.is_alpha else (self.template_annotations,)

    @property
    def main(self) -> FieldValue:
        """The engine's container, {} where it is not written."""
        pod, at = self.pod
        if self.has_fields:
            return FieldValue(mapping(pod.get("mainContainer")), (*at, "mainContainer"))
        for index, container in enumerate(items(pod.get("containers"))):
            if mapping(container).get("name") == MAIN:
                return FieldValue(container, (*at, "containers", index))
        return FieldValue({}, at)

    @property
    def sidecar(self) -> FieldValue | None:
        """The init container `runtime`, whatever it does; None where there is none. The pods of any role may have it."""
        for pod, at in (each.pod for each in self.of_each_role):
            for index, container in enumerate(items(pod.get("initContainers"))):
                if mapping(container).get("name") == RUNTIME:
                    return FieldValue(container, (*at, "initContainers", index))
        return None

    @property
    def runtime_is_sidecar(self) -> bool:
        """Whether an init container runs the Dynamo runtime, next to an engine that knows nothing of it."""
        return self.is_worker and self.sidecar is not None and self.sidecar.value.get("restartPolicy") == "Always"

    @property
    def runtime(self) -> FieldValue:
        """The container that runs the Dynamo runtime: the engine's own, or a sidecar."""
        return self.sidecar if self.sidecar is not None and self.runtime_is_sidecar else self.main

    def field(self, *steps: int | str) -> Location:
        """Place of a field below the component."""
        return (*self.at, *steps)


_Check = Callable[[ComponentView, Facts], Iterable[tuple[Location, str | dict[str, object]]]]


def of_each_role(check: _Check) -> _Check:
    """A rule about the pods of one role, made one of all pods of a component. What roles share is reported once."""

    @wraps(check)
    def of_all(component: ComponentView, facts: Facts) -> Iterable[tuple[Location, str | dict[str, object]]]:
        reported: set[Location] = set()
        for each in component.of_each_role:
            broken: list[Location] = []
            for at, said in check(each, facts):
                if at not in reported:
                    broken.append(at)
                    yield at, said
            reported.update(broken)

    return of_all


#: The schema allows 25; a list of a hundred thousand is not worth a second of everybody's time. Components.
CHECKED_COMPONENTS = 100


@dataclass(slots=True)
class GraphView:
    """A DynamoGraphDeployment."""

    version: str
    words: Words
    obj: dict[str, Any]
    #: Those of the first CHECKED_COMPONENTS that can be read, in document order.
    components: tuple[ComponentView, ...]
    #: Names of all components; None where the list or map cannot be read.
    names: tuple[str, ...] | None
    name: str = field(init=False)
    namespace: str = field(init=False)
    annotations: dict[str, Any] = field(init=False)
    spec: dict[str, Any] = field(init=False)
    status: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """What both versions have in the same place, and what a component takes over from its graph."""
        metadata, self.spec = mapping(self.obj.get("metadata")), mapping(self.obj.get("spec"))
        self.name, self.namespace = text(metadata.get("name")), text(metadata.get("namespace"))
        self.annotations, self.status = mapping(metadata.get("annotations")), mapping(self.obj.get("status"))
        started = frozenset().union(*(each.started for each in self.components))
        for component in self.components:
            component.may_be_of_grove = not self._opts_out
            component.must_be_of_grove = self.provider == OF_GROVE
            component.engine_of_graph = next(iter(started)) if len(started) == 1 else ""

    @property
    def at(self) -> Location:
        """Place of the components."""
        return "spec", self.words.components

    @property
    def backend(self) -> str:
        """Engine that it names; "" where it names none."""
        return text(self.spec.get("backendFramework"))

    def of_grove(self, grove: bool | None) -> bool | None:
        """Whether Grove runs the graph, given whether it runs graphs at all."""
        if self.provider:
            return self.provider == OF_GROVE
        return False if grove and self._opts_out else grove

    @property
    def provider(self) -> str:
        """What runs the graph, as it says itself; "" where it does not."""
        value = annotation(self.annotations, WORKLOAD_PROVIDER)
        return value if value in (OF_GROVE, OF_COMPONENTS) else ""

    @property
    def _opts_out(self) -> bool:
        if self.provider:
            return self.provider != OF_GROVE
        return str(self.annotations.get(ENABLE_GROVE, "")).lower() == "false"


def _gpus(resources: dict[str, Any], at: Location) -> FieldValue | None:
    """Number of GPUs in the resources of a container, limits before requests."""
    for kind in ("limits", "requests"):
        amounts = mapping(resources.get(kind))
        if amounts.get(NVIDIA_GPU) not in (None, ""):
            return FieldValue(amounts[NVIDIA_GPU], (*at, kind, NVIDIA_GPU))
    return None


def _gpu_fields(resources: dict[str, Any], at: Location) -> FieldValue | None:
    """The same of a v1alpha1 service, which has a field for it, and one for what it has no field for."""
    for kind in ("limits", "requests"):
        amounts = mapping(resources.get(kind))
        if amounts.get("gpu") not in (None, ""):
            return FieldValue(amounts["gpu"], (*at, kind, "gpu"))
        custom = mapping(amounts.get("custom"))
        if custom.get(NVIDIA_GPU) not in (None, ""):
            return FieldValue(custom[NVIDIA_GPU], (*at, kind, "custom", NVIDIA_GPU))
    return None
