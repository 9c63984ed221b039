"""Views of a graph and of a component for rules: each value, with the location where its author wrote it.

Rules are written once, for these views; `alpha` and `beta` create them from each version. Values are normalised (types
and modes as in v1beta1); locations and `words` are those of the written version.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, NamedTuple, Self, TypeVar

from dynamo_shared.api.engines.started import SHELL, engines_started, is_own_launch, program_of, takes_flags
from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.objects import MAIN, RUNTIME
from dynamo_shared.api.registry.annotations import ENABLE_GROVE, WORKLOAD_PROVIDER
from dynamo_shared.api.role_templates import FIELD, LEADER, ROLES, WORKER
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import annotation, below, entries, integer, items, mapping, nodes, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import GRAPH
from dynamo_shared.api.workload_provider import OF_COMPONENTS, OF_GROVE

_COMMAND = ("command", "args")

WORKERS = frozenset({"worker", "prefill", "decode"})


@dataclass(frozen=True, slots=True)
class Words:
    """Names of fields and concepts in a version, for messages."""

    component: str
    components: str
    type: str
    intra_pod: str
    inter_pod: str
    topology_name: str
    gpus: str
    #: Fields of a component that switch on the GPU memory service and failover.
    gms: tuple[str, ...]
    failover: tuple[str, ...]
    #: Field by which a component gives its replicas to an adapter.
    adapter: str


class Feature(NamedTuple):
    """An enabled GPU memory service or failover of a component: `mode` as written, `shadows` as the number of standby engines."""

    at: Location
    inter_pod: bool
    mode: str
    shadows: int = 1


class FieldValue(NamedTuple):
    """A value and its location."""

    value: Any
    at: Location


@dataclass
class ComponentView:
    """A component: an item of spec.components, a service of spec.services, or the spec of a component deployment.

    Its properties about pods are those of the pods that serve. `of_each_role` has the same for its other pods, if they
    differ. Hundreds of rules read the properties, so each is computed once.
    """

    words: Words
    at: Location
    spec: dict[str, Any]
    #: Its name in the graph; "" if it cannot be read.
    name: str
    name_at: Location
    #: The type as v1beta1 names it; "" if absent. In v1alpha1 also types that v1beta1 does not have.
    type: str
    #: Engine that the graph or the component names.
    backend: str
    #: Location of the checkpoint that it starts from; None without one.
    checkpoint: Location | None
    #: Whether an adapter owns the replicas.
    adapted: bool
    #: Metadata of a component deployment; {} for a component of a graph.
    metadata: dict[str, Any]
    #: Names of its fields, and of its experimental ones.
    fields: frozenset[str] = field(init=False)
    #: Whether it is a service of v1alpha1.
    is_alpha: bool = field(init=False)
    #: Whether it runs an engine.
    is_worker: bool = field(init=False)
    #: Pod templates of the roles that have their own, by the name of the role.
    role_templates: dict[str, FieldValue] = field(init=False)
    #: Whether its role has a pod template, which replaces the component's.
    has_own_template: bool = field(init=False)
    #: Whether its pods are created from the fields of a v1alpha1 service: always in v1alpha1, unless their role has a template.
    has_fields: bool = field(init=False)
    #: None if not set.
    replicas: int | None = field(init=False)
    #: Nodes of one replica.
    nodes: int = field(init=False)
    gms: Feature | None = field(init=False)
    failover: Feature | None = field(init=False)
    #: Image of the engine's container.
    image: FieldValue = field(init=False)
    #: Engines that its command starts, if it is a worker.
    started: frozenset[str] = field(init=False)
    #: The workload provider of its graph, OF_COMPONENTS without a graph; "" if Grove may run it.
    provider: str = OF_COMPONENTS
    #: Engine that the other workers of its graph start; "" if they start none or several.
    engine_of_graph: str = ""
    #: Variables that its graph adds to those of the container; None without one.
    env_of_graph: Any = None
    #: Role of the pods that this view describes. All roles have the same pods, unless one has its own template.
    role: str = LEADER
    #: Values of functions that are called `once`.
    known: dict[Callable[[Self], Any], Any] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Sets the values that both versions have in the same fields, or under names in `words`."""
        self.fields = frozenset((*self.spec, *mapping(self.spec.get("experimental"))))
        self.is_alpha, self.is_worker = self.words.component == "service", self.type in WORKERS
        self.role_templates = self._templatesof_roles()
        self.has_own_template = self.role in self.role_templates
        self.has_fields = self.is_alpha and not self.has_own_template
        main, at = self.main
        self.replicas, self.nodes = integer(self.spec.get("replicas")), nodes(self.spec.get("multinode"))
        self.gms, self.failover = self._feature(self.words.gms), self._feature(self.words.failover)
        self.image = FieldValue(main.get("image"), (*at, "image") if main or self.has_fields else (*at, "containers"))
        lines = [each for field in _COMMAND for each in items(main.get(field)) if isinstance(each, str)]
        self.started = engines_started(lines) if self.is_worker else frozenset()

    def _feature(self, path: tuple[str, ...]) -> Feature | None:
        """GPU memory service or failover; None if it is not an object, or if v1alpha1 does not enable it."""
        value = below(self.spec, path)
        if not isinstance(value, dict) or (self.is_alpha and value.get("enabled") is not True):
            return None
        mode, words, shadows = value.get("mode"), self.words, integer(value.get("numShadows"))
        is_inter = mode == words.inter_pod
        return Feature(self.field(*path), is_inter, text(mode) or words.intra_pod, 1 if shadows is None else shadows)

    @cached_property
    def graph(self) -> str:
        """Name of the graph that controls a component deployment; "" without one."""
        references: list[dict[str, Any]] = [mapping(each) for each in items(self.metadata.get("ownerReferences"))]
        owner = next((each for each in references if each.get("controller") is True), {})
        return text(owner.get("name")) if owner.get("kind") == GRAPH else ""

    @property
    def gpus(self) -> FieldValue | None:
        """Number of GPUs of the engine as written, and its location; None if it requests none."""
        main, at = self.main
        fields = (("gpu",), ("custom", NVIDIA_GPU)) if self.has_fields else ()
        own = _gpus(self.spec.get("resources"), self.field("resources"), *fields)
        return own or _gpus(main.get("resources"), (*at, "resources"), (NVIDIA_GPU,))

    @property
    def type_at(self) -> Location:
        """Location of its type."""
        return self.field(self.words.type)

    @cached_property
    def engine(self) -> str:
        """Engine of its pods: the engine that its command starts, else the named one; "" if there is neither."""
        if not self.is_worker:
            return ""
        return next(iter(self.started)) if len(self.started) == 1 else self.backend or self.engine_of_graph

    def of_grove(self, grove: bool | None) -> bool | None:
        """Whether Grove runs it; `grove` is whether Grove runs graphs at all."""
        return self.provider == OF_GROVE if self.provider else grove

    @cached_property
    def line(self) -> list[str]:
        """Command line of the engine's container. Without a command, the platform runs the arguments with a shell."""
        main = self.main.value
        command, args = ([each for each in items(main.get(field)) if isinstance(each, str)] for field in _COMMAND)
        return [*(command or SHELL), *args]

    @cached_property
    def program(self) -> str:
        """The program that its command line starts, for a message."""
        return program_of(self.line)

    @cached_property
    def has_command(self) -> bool:
        """Whether the engine's container has a command or arguments."""
        return any(self.main.value.get(field) for field in _COMMAND)

    @cached_property
    def memory_service(self) -> dict[str, Any]:
        """Its GPU memory service, {} without one."""
        return mapping(below(self.spec, self.words.gms))

    @cached_property
    def start(self) -> dict[str, Any]:
        """The checkpoint that it starts from, {} without one."""
        return mapping(below(self.spec, self.checkpoint[len(self.at) :])) if self.checkpoint is not None else {}

    @cached_property
    def takes_checkpoint(self) -> bool:
        """Whether the platform takes a checkpoint of the component itself."""
        start = self.start
        return self.checkpoint is not None and not start.get("checkpointRef") and start.get("identity") is None

    @property
    def is_forced_group(self) -> bool:
        """Whether it must be a scaling group of Grove, whatever its replicas consist of. Only v1beta1 has this field."""
        return below(self.spec, ("experimental", "grove", "forceScalingGroup")) is True

    @cached_property
    def takes_flags(self) -> bool:
        """Whether the platform can add flags for its engine to its command line."""
        return takes_flags(self.line) and not self.is_own_launch

    @cached_property
    def is_own_launch(self) -> bool:
        """Whether it starts a program of the user, to which the platform cannot add flags."""
        return self.has_command and is_own_launch(self.line, self.engine)

    def _templatesof_roles(self) -> dict[str, FieldValue]:
        templates: dict[str, FieldValue] = {}
        for index, role in entries(self.spec.get("roles")):
            name, template = text(role.get("name")), role.get(FIELD)
            if name in ROLES and isinstance(template, dict):
                templates.setdefault(name, FieldValue(template, self.field("roles", index, FIELD)))
        return templates

    @property
    def of_each_role(self) -> tuple[Self, ...]:
        """One view for the pods that serve, and one for the workers of a replica if they have another template."""
        return (self, self._workers) if self.role_templates else (self,)

    @cached_property
    def _workers(self) -> Self:
        return replace(self, role=WORKER)

    @property
    def pods_of_role(self) -> int:
        """Pods of its role in one replica: one for each node if all roles have the same pods."""
        if not self.role_templates:
            return self.nodes
        return self.nodes - 1 if self.role == WORKER else 1

    @cached_property
    def pod(self) -> FieldValue:
        """Pod spec of its role, {} without one."""
        return self._of_template("spec", "extraPodSpec")

    @cached_property
    def template_metadata(self) -> FieldValue:
        """Metadata of the pod template of its role, {} without any."""
        return self._of_template("metadata", "extraPodMetadata")

    def _of_template(self, part: str, field_of_alpha: str) -> FieldValue:
        """A part of the pod template of its role, {} without one; v1alpha1 services have a field for each part."""
        if self.has_fields:
            return FieldValue(mapping(self.spec.get(field_of_alpha)), self.field(field_of_alpha))
        common = FieldValue(mapping(self.spec.get(FIELD)), self.field(FIELD))
        template = self.role_templates.get(self.role, common)
        return FieldValue(mapping(template.value.get(part)), (*template.at, part))

    @cached_property
    def template_annotations(self) -> FieldValue:
        """Annotations of the pod template of its role, {} without any."""
        metadata, at = self.template_metadata
        return FieldValue(mapping(metadata.get("annotations")), (*at, "annotations"))

    @cached_property
    def annotations(self) -> tuple[FieldValue, ...]:
        """Annotations for all objects of a component, if the version has them, and for the pods of its role."""
        of_objects = FieldValue(mapping(self.spec.get("annotations")), self.field("annotations"))
        return (of_objects, self.template_annotations) if self.is_alpha else (self.template_annotations,)

    @cached_property
    def main(self) -> FieldValue:
        """The engine's container, {} if absent."""
        pod, at = self.pod
        if self.has_fields:
            return FieldValue(mapping(pod.get("mainContainer")), (*at, "mainContainer"))
        for index, container in entries(pod.get("containers")):
            if container.get("name") == MAIN:
                return FieldValue(container, (*at, "containers", index))
        return FieldValue({}, at)

    @cached_property
    def sidecar(self) -> FieldValue | None:
        """The init container `runtime`, of any purpose; None without one. The pods of any role may have it."""
        for pod, at in (each.pod for each in self.of_each_role):
            for index, container in entries(pod.get("initContainers")):
                if container.get("name") == RUNTIME:
                    return FieldValue(container, (*at, "initContainers", index))
        return None

    @cached_property
    def runtime_is_sidecar(self) -> bool:
        """Whether an init container runs the Dynamo runtime next to an engine without Dynamo code."""
        return self.is_worker and self.sidecar is not None and self.sidecar.value.get("restartPolicy") == "Always"

    @cached_property
    def runtime(self) -> FieldValue:
        """The container that runs the Dynamo runtime: the engine's own, or a sidecar."""
        return self.sidecar if self.sidecar is not None and self.runtime_is_sidecar else self.main

    def field(self, *steps: int | str) -> Location:
        """Location of a field below the component."""
        return (*self.at, *steps)


_Value = TypeVar("_Value")


def once(read: Callable[[ComponentView], _Value]) -> Callable[[ComponentView], _Value]:
    """Turns a function that several rules call into one that computes its value once for each view."""

    @wraps(read)
    def known(component: ComponentView) -> _Value:
        if read not in component.known:
            component.known[read] = read(component)
        value: _Value = component.known[read]
        return value

    return known


_Check = Callable[[ComponentView, Facts], Iterable[tuple[Location, str | dict[str, object]]]]


def of_each_role(check: _Check) -> _Check:
    """Turns a rule about the pods of one role into a rule about all pods of a component. Common errors are reported once."""

    @wraps(check)
    def of_all(component: ComponentView, facts: Facts) -> Iterable[tuple[Location, str | dict[str, object]]]:
        return of_roles(component, facts) if component.role_templates else check(component, facts)

    def of_roles(component: ComponentView, facts: Facts) -> Iterable[tuple[Location, str | dict[str, object]]]:
        reported: set[Location] = set()
        for each in component.of_each_role:
            broken: list[Location] = []
            for at, problem in check(each, facts):
                if at not in reported:
                    broken.append(at)
                    yield at, problem
            reported.update(broken)

    return of_all


#: The schema allows 25 components; the limit keeps a list of a hundred thousand from delaying other requests.
CHECKED_COMPONENTS = 100


@dataclass(slots=True)
class GraphView:
    """A DynamoGraphDeployment."""

    version: str
    words: Words
    obj: dict[str, Any]
    #: The readable ones of the first CHECKED_COMPONENTS components, in document order.
    components: tuple[ComponentView, ...]
    #: Names of all components; None if the list or map cannot be read.
    names: tuple[str, ...] | None
    name: str = field(init=False)
    namespace: str = field(init=False)
    annotations: dict[str, Any] = field(init=False)
    spec: dict[str, Any] = field(init=False)
    status: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Sets the values that both versions have in the same place, and the values that a component gets from its graph."""
        metadata, self.spec = mapping(self.obj.get("metadata")), mapping(self.obj.get("spec"))
        self.name, self.namespace = text(metadata.get("name")), text(metadata.get("namespace"))
        self.annotations, self.status = mapping(metadata.get("annotations")), mapping(self.obj.get("status"))
        started = frozenset().union(*(each.started for each in self.components))
        for component in self.components:
            component.provider = self.provider or (OF_COMPONENTS if self.opts_out else "")
            component.engine_of_graph = next(iter(started)) if len(started) == 1 else ""
            component.env_of_graph = self.spec.get("env")

    @property
    def at(self) -> Location:
        """Location of the components."""
        return "spec", self.words.components

    @property
    def backend(self) -> str:
        """Engine that it names; "" if absent."""
        return text(self.spec.get("backendFramework"))

    def of_grove(self, grove: bool | None) -> bool | None:
        """Whether Grove runs the graph; `grove` is whether Grove runs graphs at all."""
        if self.provider:
            return self.provider == OF_GROVE
        return False if self.opts_out else grove

    @property
    def provider(self) -> str:
        """The workload provider in its annotation; "" if absent."""
        value = annotation(self.annotations, WORKLOAD_PROVIDER)
        return value if value in (OF_GROVE, OF_COMPONENTS) else ""

    @property
    def opts_out(self) -> bool:
        """Whether its annotation turns Grove off; the annotation with the workload provider takes precedence."""
        return str(self.annotations.get(ENABLE_GROVE, "")).lower() == "false"


def _gpus(resources: Any, at: Location, *fields: tuple[str, ...]) -> FieldValue | None:
    """Number of GPUs in one of the fields of `resources`; limits take precedence over requests."""
    for path in ((kind, *name) for kind in ("limits", "requests") for name in fields):
        if (value := below(resources, path)) not in (None, ""):
            return FieldValue(value, (*at, *path))
    return None
