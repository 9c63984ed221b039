"""What only v1alpha1 can say of a graph or a component: kept by conversion in an annotation, and acted on all the same.

It is parsed once for each generation of a stored object, not in each reconcile.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from dynamo_shared.api.conversion import convert
from dynamo_shared.api.model import ApiModel, StringMap
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import OPERATOR_COMPONENT_SPEC, OPERATOR_GRAPH_SPEC, PRESERVED_FIELDS
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.api.v1alpha1.exposure import IngressSpec, ServiceAutoscaling
from dynamo_shared.api.v1alpha1.pods import VolumeClaim, created_claims_are_complete
from dynamo_shared.api.v1beta1 import DynamoComponentDeployment, DynamoGraphDeployment, to_dict

T = TypeVar("T")

ALPHA = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1").api_version
#: Generations whose fields are remembered, many times those of the objects of a large cluster.
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class LegacyService:
    """A service of v1alpha1, as far as v1beta1 has no place for it."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    ingress: KubeObject | None = None
    type: str = ""
    """`componentType`, which may be one that v1beta1 does not know, such as `default`"""
    autoscaling: KubeObject = field(default_factory=dict)
    shadows: int | None = None
    """Engines that wait for another one to fail, where they are more than v1beta1 has room for"""
    part: str = ""
    """`subComponentType`: beyond prefill and decode of a worker, which v1beta1 has as types, a label of the pods"""

    @property
    def has_metadata(self) -> bool:
        """Whether it has labels or annotations."""
        return bool(self.labels or self.annotations)


@dataclass(frozen=True, slots=True)
class LegacyGraph:
    """A graph of v1alpha1, as far as v1beta1 has no place for it."""

    claims: tuple[KubeObject, ...] = ()
    services: Mapping[str, LegacyService] = field(default_factory=dict)


NO_SERVICE = LegacyService()
NO_GRAPH = LegacyGraph()
_graphs: dict[tuple[str, int, str], LegacyGraph] = {}
_services: dict[tuple[str, int, str], LegacyService] = {}


def legacy_graph(graph: DynamoGraphDeployment) -> LegacyGraph:
    """A graph's v1alpha1 fields; empty where it never was v1alpha1, or has no such fields."""
    metadata = graph.metadata
    if (text := _kept(metadata.annotations, OPERATOR_GRAPH_SPEC)) is None:
        return NO_GRAPH
    return _once(_graphs, (metadata.uid, metadata.generation, text), lambda: _graph(to_dict(graph)))


def legacy_graph_of(obj: KubeObject) -> LegacyGraph:
    """The same of a graph as it is stored."""
    metadata = obj["metadata"]
    if (text := _kept(metadata.get("annotations") or {}, OPERATOR_GRAPH_SPEC)) is None:
        return NO_GRAPH
    return _once(_graphs, (metadata.get("uid", ""), metadata.get("generation", 0), text), lambda: _graph(obj))


def legacy_component(component: DynamoComponentDeployment) -> LegacyService:
    """A component deployment's v1alpha1 fields."""
    metadata = component.metadata
    if (text := _kept(metadata.annotations, OPERATOR_COMPONENT_SPEC)) is None:
        return NO_SERVICE
    return _once(
        _services,
        (metadata.uid, metadata.generation, text),
        lambda: _service(convert(to_dict(component), ALPHA).get("spec")),
    )


def _kept(annotations: Mapping[str, str], operators: str) -> str | None:
    """The annotation that keeps v1alpha1 fields: the platform's, or of an object that the operator stored its own."""
    text = annotations.get(PRESERVED_FIELDS)
    return text if text is not None else annotations.get(operators)


def _once(known: dict[tuple[str, int, str], T], stored: tuple[str, int, str], read: Callable[[], T]) -> T:
    """What is read of a generation of an object; one that is not stored is read each time."""
    uid, generation, _ = stored
    if not (uid and generation):
        return read()
    if (present := known.get(stored)) is not None:
        return present
    if len(known) >= REMEMBERED:
        known.clear()
    result = known[stored] = read()
    return result


class _ServiceFields(ApiModel):
    """What is read of a service, as v1alpha1 has it: a tenant may write the annotation, and anything into it."""

    labels: StringMap | None = None
    annotations: StringMap | None = None
    ingress: IngressSpec | None = None
    component_type: str | None = None
    sub_component_type: str | None = None
    autoscaling: ServiceAutoscaling | None = None


class _GraphFields(ApiModel):
    pvcs: list[VolumeClaim] | None = None
    services: dict[str, _ServiceFields] | None = None


def _read(fields: type[ApiModel], value: Any) -> KubeObject:
    """The value, or nothing of it where its fields are not such as v1alpha1 has."""
    try:
        fields.model_validate(value, extra="ignore")
    except ValidationError:
        return {}
    return dict(value)


def _graph(obj: KubeObject) -> LegacyGraph:
    spec = _read(_GraphFields, convert(obj, ALPHA).get("spec"))
    services = spec.get("services") or {}
    claims = tuple(each for each in spec.get("pvcs") or () if not [*created_claims_are_complete.violations(each)])
    return LegacyGraph(claims, {name: _service(each) for name, each in services.items()})


def _service(written: Any) -> LegacyService:
    body = _read(_ServiceFields, written)
    return LegacyService(
        body.get("labels") or {},
        body.get("annotations") or {},
        body.get("ingress"),
        body.get("componentType") or "",
        body.get("autoscaling") or {},
        _shadows(body.get("failover")),
        body.get("subComponentType") or "",
    )


def _shadows(failover: object) -> int | None:
    count = failover.get("numShadows") if isinstance(failover, dict) and failover.get("enabled") is True else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 1 else None
