"""All rules of a kind, applied: what the webhooks and `dynamoctl` ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dynamo_shared.api import deprecations
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.resources import GROUP
from dynamo_shared.api.validation import alpha, beta
from dynamo_shared.api.validation.alone import ALONE, OF_A_GRAPH
from dynamo_shared.api.validation.annotations import (
    ANNOTATIONS,
    ANNOTATIONS_OF_COMPONENTS,
    ANNOTATIONS_OF_COMPONENTS_WITHOUT_EFFECT,
    ANNOTATIONS_WITHOUT_EFFECT,
)
from dynamo_shared.api.validation.checkpoint import CHANGES_OF_CHECKPOINTS, CHECKPOINTS, UNUSED_IN_CHECKPOINTS
from dynamo_shared.api.validation.component import COMPONENTS, WORTH_KNOWING
from dynamo_shared.api.validation.engines import ENGINES
from dynamo_shared.api.validation.facts import Facts, Findings
from dynamo_shared.api.validation.graph import GRAPHS
from dynamo_shared.api.validation.immutability import ADVICE, ADVICE_ALONE, CHANGES, CHANGES_ALONE
from dynamo_shared.api.validation.model import ADVICE_FOR_MODELS, CHANGES_OF_MODELS, MODELS, UNUSED_IN_MODELS
from dynamo_shared.api.validation.names import NAMES, NAMES_ALONE
from dynamo_shared.api.validation.objects import CLAIMS, DEVICES, WAYS_IN
from dynamo_shared.api.validation.orchestrators import CHANGES_ON_GROVE, GROVE, ORCHESTRATORS, ORCHESTRATORS_ALONE
from dynamo_shared.api.validation.picker import ADVICE_FOR_PICKERS, PICKERS, PICKERS_OF_GRAPHS
from dynamo_shared.api.validation.pods import PODS, PODS_WORTH_KNOWING
from dynamo_shared.api.validation.reading import is_being_deleted, mapping
from dynamo_shared.api.validation.replicas import REPLICAS, REPLICAS_OF_ADAPTERS
from dynamo_shared.api.validation.request import (
    ADVICE_FOR_REQUESTS,
    CHANGES_OF_REQUESTS,
    PLACES_OF_REQUESTS,
    REQUESTS,
    REQUESTS_AT_CREATION,
)
from dynamo_shared.api.validation.request_overrides import ADVICE_FOR_OVERRIDES, OVERRIDES
from dynamo_shared.api.validation.roles import ROLES
from dynamo_shared.api.validation.rule_set import (
    ADAPTER,
    ALPHA,
    BETA,
    CHECKPOINT,
    COMPONENT,
    GRAPH,
    MODEL,
    REQUEST,
    RuleSet,
)
from dynamo_shared.api.validation.running import ABOUT_RUNNING, RUNNING, RUNNING_ALONE, RUNNING_OF_GRAPHS
from dynamo_shared.api.validation.topology import TOPOLOGY, TOPOLOGY_AT_CREATION, TOPOLOGY_WITHOUT_EFFECT
from dynamo_shared.api.validation.unused import UNUSED, UNUSED_IN_COMPONENTS_OF_GRAPHS, UNUSED_IN_GRAPHS
from dynamo_shared.api.validation.view import GraphView

#: Rules about a graph, then those about each of its components, in the order in which they report.
_OF_GRAPHS = (GRAPHS, CLAIMS, NAMES, ANNOTATIONS, PICKERS_OF_GRAPHS, TOPOLOGY, RUNNING_OF_GRAPHS)
_OF_COMPONENTS = (
    COMPONENTS,
    REPLICAS,
    ROLES,
    WAYS_IN,
    PODS,
    ANNOTATIONS_OF_COMPONENTS,
    PICKERS,
    RUNNING,
    ENGINES,
    DEVICES,
)

#: Of each component, what is only warned of.
_ABOUT_COMPONENTS = (
    WORTH_KNOWING,
    PODS_WORTH_KNOWING,
    ANNOTATIONS_OF_COMPONENTS_WITHOUT_EFFECT,
    ABOUT_RUNNING,
    UNUSED,
)

#: Every rule set, for docs: what is refused, then what is only warned of.
REFUSING: tuple[RuleSet, ...] = (
    *_OF_GRAPHS,
    TOPOLOGY_AT_CREATION,
    NAMES_ALONE,
    RUNNING_ALONE,
    *_OF_COMPONENTS,
    REPLICAS_OF_ADAPTERS,
    CHANGES,
    CHANGES_ALONE,
    REQUESTS,
    REQUESTS_AT_CREATION,
    PLACES_OF_REQUESTS,
    OVERRIDES,
    CHANGES_OF_REQUESTS,
    MODELS,
    CHANGES_OF_MODELS,
    CHECKPOINTS,
    CHANGES_OF_CHECKPOINTS,
)
WARNING: tuple[RuleSet, ...] = (
    ANNOTATIONS_WITHOUT_EFFECT,
    TOPOLOGY_WITHOUT_EFFECT,
    ORCHESTRATORS,
    ORCHESTRATORS_ALONE,
    GROVE,
    CHANGES_ON_GROVE,
    UNUSED_IN_GRAPHS,
    *_ABOUT_COMPONENTS,
    UNUSED_IN_COMPONENTS_OF_GRAPHS,
    ADVICE_FOR_PICKERS,
    ADVICE,
    ALONE,
    ADVICE_ALONE,
    OF_A_GRAPH,
    ADVICE_FOR_REQUESTS,
    ADVICE_FOR_OVERRIDES,
    UNUSED_IN_MODELS,
    ADVICE_FOR_MODELS,
    UNUSED_IN_CHECKPOINTS,
)

_VIEWS = {ALPHA: alpha, BETA: beta}
_Findings = tuple[Iterator[FieldError], Iterator[FieldError]]


def validate(obj: dict[str, Any], old: dict[str, Any] | None, facts: Facts) -> Findings:
    """Every error and warning of an object, in a stable order; `old` is what an update replaces, None at creation.

    Both are of one version, and errors name the fields of it. What the schema refuses is not repeated, and a value of
    a wrong type has no errors here. An object that is being deleted is let through: its finalizers must go.
    """
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        return Findings()
    group, _, version = api_version.partition("/")
    if group != GROUP or version not in _VIEWS or is_being_deleted(obj) or is_being_deleted(old):
        return Findings()
    check = _CHECKS.get(kind)
    errors, warnings = check(obj, old, version, facts) if check else (iter(()), iter(()))
    used = (deprecations.warning(path, each) for path, each in deprecations.used(obj) if path)
    return Findings(tuple(errors), (*used, *map(str, warnings)))


def _graph(obj: dict[str, Any], old: dict[str, Any] | None, version: str, facts: Facts) -> _Findings:
    reader = _VIEWS[version]
    graph = reader.graph(obj)
    before = reader.graph(old) if old is not None else None
    return _errors_of_graph(graph, before, facts), _warnings_of_graph(graph, before, facts)


def _errors_of_graph(graph: GraphView, old: GraphView | None, facts: Facts) -> Iterator[FieldError]:
    version = graph.version
    for rule_set in _OF_GRAPHS:
        yield from rule_set.broken(version, graph, facts)
    if old is None:
        yield from TOPOLOGY_AT_CREATION.broken(version, graph, facts)
    for component in graph.components:
        for rule_set in _OF_COMPONENTS:
            yield from rule_set.broken(version, component, facts)
    if old is not None:
        yield from CHANGES.broken(version, graph, old, facts)


def _warnings_of_graph(graph: GraphView, old: GraphView | None, facts: Facts) -> Iterator[FieldError]:
    version = graph.version
    yield from ANNOTATIONS_WITHOUT_EFFECT.broken(version, graph, facts)
    yield from TOPOLOGY_WITHOUT_EFFECT.broken(version, graph, facts)
    yield from ORCHESTRATORS.broken(version, graph, facts)
    yield from GROVE.broken(version, graph, facts)
    yield from UNUSED_IN_GRAPHS.broken(version, graph, facts)
    for component in graph.components:
        for rule_set in (*_ABOUT_COMPONENTS, UNUSED_IN_COMPONENTS_OF_GRAPHS, ADVICE_FOR_PICKERS):
            yield from rule_set.broken(version, component, facts)
    if old is not None:
        yield from CHANGES_ON_GROVE.broken(version, graph, old, facts)
        yield from ADVICE.broken(version, graph, old, facts)


def _component(obj: dict[str, Any], old: dict[str, Any] | None, version: str, facts: Facts) -> _Findings:
    reader = _VIEWS[version]
    component = reader.component(obj)
    before = reader.component(old) if old is not None else None

    def errors() -> Iterator[FieldError]:
        yield from NAMES_ALONE.broken(version, component, obj.get("metadata"), facts)
        yield from RUNNING_ALONE.broken(version, component, facts)
        for rule_set in _OF_COMPONENTS:
            yield from rule_set.broken(version, component, facts)
        if before is not None:
            yield from CHANGES_ALONE.broken(version, component, before, facts)

    def warnings() -> Iterator[FieldError]:
        for rule_set in _ABOUT_COMPONENTS:
            yield from rule_set.broken(version, component, facts)
        yield from ORCHESTRATORS_ALONE.broken(version, component, facts)
        yield from ALONE.broken(version, component, obj.get("metadata"), facts)
        if before is not None:
            yield from ADVICE_ALONE.broken(version, component, before, facts)
            yield from OF_A_GRAPH.broken(version, component, before, obj.get("metadata"), facts)

    return errors(), warnings()


def _request(obj: dict[str, Any], old: dict[str, Any] | None, version: str, facts: Facts) -> _Findings:
    def errors() -> Iterator[FieldError]:
        spec = mapping(obj.get("spec"))
        yield from REQUESTS.broken(version, spec, facts)
        yield from OVERRIDES.broken(version, spec, facts)
        if old is None:
            yield from REQUESTS_AT_CREATION.broken(version, spec, facts)
            yield from PLACES_OF_REQUESTS.broken(version, obj, facts)
        else:
            yield from CHANGES_OF_REQUESTS.broken(version, obj, old, facts)

    def warnings() -> Iterator[FieldError]:
        spec = mapping(obj.get("spec"))
        yield from ADVICE_FOR_REQUESTS.broken(version, spec, facts)
        yield from ADVICE_FOR_OVERRIDES.broken(version, spec, facts)

    return errors(), warnings()


def _model(obj: dict[str, Any], old: dict[str, Any] | None, version: str, facts: Facts) -> _Findings:
    spec, before = mapping(obj.get("spec")), mapping((old or {}).get("spec"))

    def errors() -> Iterator[FieldError]:
        yield from MODELS.broken(version, spec, facts)
        if old is not None:
            yield from CHANGES_OF_MODELS.broken(version, spec, before, facts)

    def warnings() -> Iterator[FieldError]:
        yield from UNUSED_IN_MODELS.broken(version, spec, facts)
        if old is not None:
            yield from ADVICE_FOR_MODELS.broken(version, spec, before, facts)

    return errors(), warnings()


def _checkpoint(obj: dict[str, Any], old: dict[str, Any] | None, version: str, facts: Facts) -> _Findings:
    spec = mapping(obj.get("spec"))

    def errors() -> Iterator[FieldError]:
        yield from CHECKPOINTS.broken(version, spec, facts)
        if old is not None:
            yield from CHANGES_OF_CHECKPOINTS.broken(version, spec, mapping(old.get("spec")), facts)

    return errors(), UNUSED_IN_CHECKPOINTS.broken(version, spec, facts)


def _adapter(obj: dict[str, Any], _old: dict[str, Any] | None, version: str, facts: Facts) -> _Findings:
    return REPLICAS_OF_ADAPTERS.broken(version, mapping(obj.get("spec")), facts), iter(())


_Check = Callable[[dict[str, Any], dict[str, Any] | None, str, Facts], _Findings]
_CHECKS: dict[str, _Check] = {
    GRAPH: _graph,
    COMPONENT: _component,
    REQUEST: _request,
    MODEL: _model,
    CHECKPOINT: _checkpoint,
    ADAPTER: _adapter,
}
