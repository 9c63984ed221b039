"""Applies all rules of a kind: the entry point for the webhooks and `dynamoctl`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from dynamo_shared.api import deprecations
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.field_errors import path_of
from dynamo_shared.api.resources import GROUP
from dynamo_shared.api.untrusted.reading import is_being_deleted, mapping
from dynamo_shared.api.validation import alpha, beta
from dynamo_shared.api.validation.alone import ALONE, OF_A_GRAPH
from dynamo_shared.api.validation.annotations import (
    ANNOTATIONS,
    ANNOTATIONS_OF_COMPONENTS,
    ANNOTATIONS_OF_COMPONENTS_WITHOUT_EFFECT,
    ANNOTATIONS_WITHOUT_EFFECT,
)
from dynamo_shared.api.validation.checkpoint import CHANGES_OF_CHECKPOINTS, CHECKPOINTS, UNUSED_IN_CHECKPOINTS
from dynamo_shared.api.validation.component import COMPONENT_WARNINGS, COMPONENTS
from dynamo_shared.api.validation.engines import ENGINES
from dynamo_shared.api.validation.facts import Facts, Findings
from dynamo_shared.api.validation.graph import GRAPHS
from dynamo_shared.api.validation.immutability import ADVICE_ON_BACKENDS, CHANGES, CHANGES_OF_BACKENDS
from dynamo_shared.api.validation.kv_transfer import ABOUT_KV_TRANSFER, CHANGES_OF_KV_TRANSFER, KV_TRANSFER
from dynamo_shared.api.validation.model import ADVICE_FOR_MODELS, CHANGES_OF_MODELS, MODELS, UNUSED_IN_MODELS
from dynamo_shared.api.validation.names import NAMES, NAMES_ALONE
from dynamo_shared.api.validation.objects import CLAIMS, CLAIMS_AND_INGRESSES
from dynamo_shared.api.validation.orchestrators import (
    CHANGES_ON_GROVE,
    GROVE,
    OF_GROVE,
    ORCHESTRATORS,
    ORCHESTRATORS_ALONE,
    WITHOUT_GROVE,
)
from dynamo_shared.api.validation.picker import ADVICE_FOR_PICKERS, PICKERS, PICKERS_OF_GRAPHS
from dynamo_shared.api.validation.pods import POD_WARNINGS, PODS
from dynamo_shared.api.validation.provider_override import (
    CHANGES_OF_PROVIDER_OVERRIDES,
    PROVIDER_OVERRIDES,
    PROVIDER_OVERRIDES_ALONE,
)
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
    CREATED,
    GRAPH,
    MODEL,
    REQUEST,
    UPDATED,
    Rule,
    RuleSet,
    Violations,
    broken,
)
from dynamo_shared.api.validation.running import RUNNING, RUNNING_ALONE, RUNNING_OF_GRAPHS, RUNTIME_RULES
from dynamo_shared.api.validation.sidecar import ABOUT_SIDECARS, SIDECARS
from dynamo_shared.api.validation.topology import TOPOLOGY, TOPOLOGY_AT_CREATION, TOPOLOGY_WITHOUT_EFFECT
from dynamo_shared.api.validation.unused import UNUSED, UNUSED_IN_COMPONENTS_OF_GRAPHS, UNUSED_IN_GRAPHS

#: Kinds that require a spec. Their schemas, like the reference's, require fields of the spec, but not the spec itself.
SPECIFIED = RuleSet("Specs", (REQUEST, MODEL, CHECKPOINT, ADAPTER))


@SPECIFIED.rule("required, and missing", added=True)
def objects_have_a_spec(obj: dict[str, Any], _facts: Facts) -> Violations:
    """A request, a model, a checkpoint and an adapter require a spec."""
    if obj.get("spec") is None:
        yield broken(("spec",))


#: Rules for each component, of a graph or on its own, in the order of reports.
_OF_COMPONENTS = (
    COMPONENTS,
    REPLICAS,
    ROLES,
    CLAIMS_AND_INGRESSES,
    PODS,
    ANNOTATIONS_OF_COMPONENTS,
    PICKERS,
    RUNNING,
    ENGINES,
    SIDECARS,
)
#: Warnings about each component.
_ABOUT_COMPONENTS = (
    COMPONENT_WARNINGS,
    POD_WARNINGS,
    ANNOTATIONS_OF_COMPONENTS_WITHOUT_EFFECT,
    RUNTIME_RULES,
    ABOUT_SIDECARS,
    UNUSED,
)
#: Reported locations for one rule and one subject. A tenant may write thousands, and an author needs only the first few.
_REPORTED = 100


#: Subjects of rules: the object, its view (a graph, a component, or a spec), and the components of a graph.
_OBJECT, _VIEW, _EACH = "object", "view", "components"
_Step = tuple[str, tuple[RuleSet, ...]]
"""Rule sets with their subject."""
_Subjects = dict[str, list[tuple[Any, Any]]]
"""Each subject with the one that it replaces, or None."""


def _spec(_version: str, obj: dict[str, Any]) -> dict[str, Any]:
    return mapping(obj.get("spec"))


@dataclass(frozen=True, slots=True)
class _Kind:
    """The checks of a kind: how rules read it, the refusing rules, and the warnings, in this order."""

    refusing: tuple[_Step, ...]
    warning: tuple[_Step, ...] = ()
    read: Callable[[str, dict[str, Any]], Any] = _spec


_VIEWS = {ALPHA: alpha, BETA: beta}
_KINDS = {
    GRAPH: _Kind(
        read=lambda version, obj: _VIEWS[version].graph(obj),
        refusing=(
            (_VIEW, (GRAPHS, CLAIMS, NAMES, ANNOTATIONS, PICKERS_OF_GRAPHS, TOPOLOGY, PROVIDER_OVERRIDES)),
            (_VIEW, (KV_TRANSFER, RUNNING_OF_GRAPHS, OF_GROVE, TOPOLOGY_AT_CREATION)),
            (_EACH, _OF_COMPONENTS),
            (_VIEW, (CHANGES_OF_BACKENDS, CHANGES, CHANGES_OF_PROVIDER_OVERRIDES, CHANGES_OF_KV_TRANSFER)),
        ),
        warning=(
            (_VIEW, (ANNOTATIONS_WITHOUT_EFFECT, TOPOLOGY_WITHOUT_EFFECT, WITHOUT_GROVE)),
            (_VIEW, (ABOUT_KV_TRANSFER, ORCHESTRATORS, GROVE, UNUSED_IN_GRAPHS)),
            (_EACH, (*_ABOUT_COMPONENTS, UNUSED_IN_COMPONENTS_OF_GRAPHS, ADVICE_FOR_PICKERS)),
            (_VIEW, (CHANGES_ON_GROVE, ADVICE_ON_BACKENDS)),
        ),
    ),
    COMPONENT: _Kind(
        read=lambda version, obj: _VIEWS[version].component(obj),
        refusing=(
            (_VIEW, (NAMES_ALONE, RUNNING_ALONE, PROVIDER_OVERRIDES_ALONE, *_OF_COMPONENTS, CHANGES_OF_BACKENDS)),
        ),
        warning=((_VIEW, (*_ABOUT_COMPONENTS, ORCHESTRATORS_ALONE, ALONE, ADVICE_ON_BACKENDS, OF_A_GRAPH)),),
    ),
    REQUEST: _Kind(
        refusing=(
            (_OBJECT, (SPECIFIED,)),
            (_VIEW, (REQUESTS, OVERRIDES, REQUESTS_AT_CREATION)),
            (_OBJECT, (PLACES_OF_REQUESTS, CHANGES_OF_REQUESTS)),
        ),
        warning=((_VIEW, (ADVICE_FOR_REQUESTS, ADVICE_FOR_OVERRIDES)),),
    ),
    MODEL: _Kind(
        refusing=((_OBJECT, (SPECIFIED,)), (_VIEW, (MODELS, CHANGES_OF_MODELS))),
        warning=((_VIEW, (UNUSED_IN_MODELS, ADVICE_FOR_MODELS)),),
    ),
    CHECKPOINT: _Kind(
        refusing=((_OBJECT, (SPECIFIED,)), (_VIEW, (CHECKPOINTS, CHANGES_OF_CHECKPOINTS))),
        warning=((_VIEW, (UNUSED_IN_CHECKPOINTS,)),),
    ),
    ADAPTER: _Kind(refusing=((_OBJECT, (SPECIFIED,)), (_VIEW, (REPLICAS_OF_ADAPTERS,)))),
}


def _rule_sets(steps: Iterable[_Step]) -> tuple[RuleSet, ...]:
    return tuple(dict.fromkeys(rule_set for _, rule_sets in steps for rule_set in rule_sets))


#: All rule sets, for the documentation: the refusing ones, then the warnings.
REFUSING = _rule_sets(step for kind in _KINDS.values() for step in kind.refusing)
WARNING = _rule_sets(step for kind in _KINDS.values() for step in kind.warning)


def validate(obj: dict[str, Any], old: dict[str, Any] | None, facts: Facts) -> Findings:
    """Every error and warning of an object, in a stable order; `old` is the object that an update replaces, None at
    creation.

    Both have the same version, and errors name fields of that version. Errors of the schema are not repeated, and
    values of a wrong type are skipped. An object that is being deleted has no errors, so that its finalizers can be
    removed.
    """
    name, api_version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(name, str) or not isinstance(api_version, str):
        return Findings()
    group, _, version = api_version.partition("/")
    if group != GROUP or version not in _VIEWS or is_being_deleted(obj) or is_being_deleted(old):
        return Findings()
    used = [deprecations.warning(path, each) for path, each in deprecations.used(obj) if path]
    if (kind := _KINDS.get(name)) is None:
        return Findings(warnings=tuple(used))
    before = kind.read(version, old) if old is not None else None
    view = kind.read(version, obj)
    components = [(each, None) for each in view.components] if name == GRAPH else []
    subjects: _Subjects = {_OBJECT: [(obj, old)], _VIEW: [(view, before)], _EACH: components}
    warnings = map(str, _broken(kind.warning, version, subjects, facts))
    return Findings(tuple(_broken(kind.refusing, version, subjects, facts)), (*used, *warnings))


def _broken(steps: Iterable[_Step], version: str, subjects: _Subjects, facts: Facts) -> Iterator[FieldError]:
    for which, rule_sets in steps:
        for subject, before in subjects[which]:
            for rule in _rules(rule_sets, version, updated=before is not None):
                if rule.of and rule.of not in subject.fields:
                    continue
                violations = rule.check(subject, before, facts) if rule.when == UPDATED else rule.check(subject, facts)
                remaining = _REPORTED
                for location, problem in violations:
                    yield FieldError(path_of(location), rule.message(problem))
                    if not (remaining := remaining - 1):
                        break


@cache
def _rules(rule_sets: tuple[RuleSet, ...], version: str, *, updated: bool) -> tuple[Rule, ...]:
    """The rules of a version for a subject that is created, or that replaces another one."""
    other = CREATED if updated else UPDATED
    rules = (rule for rule_set in rule_sets for rule in rule_set.rules)
    return tuple(rule for rule in rules if version in rule.versions and rule.when != other)
