"""Fields of graphs and components that only v1alpha1 has. Conversion stores them in an annotation, and they have effect.

The annotation is parsed once for each generation of a stored object, not in each reconcile.
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
#: Limit of the cached generations; a large cluster has far fewer.
CAPACITY = 10_000


@dataclass(frozen=True, slots=True)
class LegacyService:
    """The fields of a v1alpha1 service that v1beta1 does not have."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    ingress: KubeObject | None = None
    type: str = ""
    """`componentType`, also one that v1beta1 does not have, such as `default`"""
    autoscaling: KubeObject = field(default_factory=dict)
    shadows: int | None = None
    """number of standby engines for failover if it is above 1, the only number of v1beta1"""
    part: str = ""
    """`subComponentType`, which is a label of the pods; v1beta1 has types for prefill and decode"""

    @property
    def has_metadata(self) -> bool:
        """Whether it has labels or annotations."""
        return bool(self.labels or self.annotations)


@dataclass(frozen=True, slots=True)
class LegacyGraph:
    """The fields of a v1alpha1 graph that v1beta1 does not have."""

    claims: tuple[KubeObject, ...] = ()
    services: Mapping[str, LegacyService] = field(default_factory=dict)


NO_SERVICE = LegacyService()
NO_GRAPH = LegacyGraph()
_graphs: dict[tuple[str, int, str], LegacyGraph] = {}
_services: dict[tuple[str, int, str], LegacyService] = {}


def legacy_graph(graph: DynamoGraphDeployment) -> LegacyGraph:
    """The v1alpha1 fields of a graph; empty if it has none."""
    metadata = graph.metadata
    if (text := _preserved(metadata.annotations, OPERATOR_GRAPH_SPEC)) is None:
        return NO_GRAPH
    return _cached(_graphs, (metadata.uid, metadata.generation, text), lambda: _graph(to_dict(graph)))


def legacy_graph_of(obj: KubeObject) -> LegacyGraph:
    """The v1alpha1 fields of a stored graph, as JSON; empty if it has none."""
    metadata = obj["metadata"]
    if (text := _preserved(metadata.get("annotations") or {}, OPERATOR_GRAPH_SPEC)) is None:
        return NO_GRAPH
    return _cached(_graphs, (metadata.get("uid", ""), metadata.get("generation", 0), text), lambda: _graph(obj))


def legacy_component(component: DynamoComponentDeployment) -> LegacyService:
    """The v1alpha1 fields of a component deployment; empty if it has none."""
    metadata = component.metadata
    if (text := _preserved(metadata.annotations, OPERATOR_COMPONENT_SPEC)) is None:
        return NO_SERVICE
    return _cached(
        _services,
        (metadata.uid, metadata.generation, text),
        lambda: _service(convert(to_dict(component), ALPHA).get("spec")),
    )


def _preserved(annotations: Mapping[str, str], of_operator: str) -> str | None:
    """The annotation with v1alpha1 fields: this platform's, otherwise that of the reference operator."""
    text = annotations.get(PRESERVED_FIELDS)
    return text if text is not None else annotations.get(of_operator)


def _cached(cache: dict[tuple[str, int, str], T], key: tuple[str, int, str], read: Callable[[], T]) -> T:
    """The cached result of `read` for (uid, generation, annotation); without a uid or generation it is not cached."""
    uid, generation, _ = key
    if not (uid and generation):
        return read()
    if (known := cache.get(key)) is not None:
        return known
    if len(cache) >= CAPACITY:
        cache.clear()
    result = cache[key] = read()
    return result


class _ServiceFields(ApiModel):
    """The fields of a v1alpha1 service that are used, for validation: a tenant may write anything into the annotation."""

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
    """The value if it has valid v1alpha1 fields, otherwise an empty object."""
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
