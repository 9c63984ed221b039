"""Rules that depend on whether a graph controls a component deployment: fields without effect, changes that do not last."""

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.registry.annotations import (
    DISCOVERY_BACKEND,
    ENABLE_METRICS,
    KUBE_DISCOVERY_MODE,
    VLLM_DISTRIBUTED_EXECUTOR_BACKEND,
)
from dynamo_shared.api.untrusted.reading import mapping
from dynamo_shared.api.validation.annotations import OF_PODS
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.orchestrators import fields_of_grove
from dynamo_shared.api.validation.rule_set import COMPONENT, UPDATED, RuleSet, Violations, broken, path
from dynamo_shared.api.validation.view import ComponentView

ALONE = RuleSet("Component deployments", (COMPONENT,))
OF_A_GRAPH = RuleSet("Component deployments", (COMPONENT,), UPDATED)


@ALONE.rule(
    "has no effect: only components of a graph get a scaling adapter; leave it out, and scale this component deployment "
    "itself (kubectl scale, an autoscaler)",
    added=True,
)
def adapters_belong_to_graphs(component: ComponentView, _facts: Facts) -> Violations:
    """A component deployment without a graph gets no scaling adapter."""
    if component.adapted and not component.graph:
        yield broken(component.field("scalingAdapter"))


@ALONE.rule(
    "has no effect: only Grove packs pods by topology, and Grove runs only graphs; write a DynamoGraphDeployment",
    added=True,
)
def topology_belongs_to_graphs(component: ComponentView, _facts: Facts) -> Violations:
    """The pod template of a component deployment without a graph places its pods; no topology constraint does."""
    if component.spec.get("topologyConstraint") is not None and not component.graph:
        yield broken(component.field("topologyConstraint"))


@ALONE.rule("has no effect: only Grove {does}, and Grove runs only graphs; write a DynamoGraphDeployment", added=True)
def fields_of_grove_belong_to_graphs(component: ComponentView, _facts: Facts) -> Violations:
    """Grove does not run component deployments, so fields that only Grove reads have no effect."""
    for field, does in () if component.graph else fields_of_grove(component):
        yield broken(field, does=does)


_OF_PODS = (ENABLE_METRICS, DISCOVERY_BACKEND, KUBE_DISCOVERY_MODE, VLLM_DISTRIBUTED_EXECUTOR_BACKEND, *OF_PODS)


@ALONE.rule("has no effect here: write it in {annotations}", added=True)
def annotations_are_read_from_pods(component: ComponentView, _facts: Facts) -> Violations:
    """A component deployment reads these annotations only from its pod template."""
    given = mapping(component.metadata.get("annotations"))
    annotations = path(component.template_annotations.at)
    for name in _OF_PODS:
        if name in given and not component.graph:
            yield broken(("metadata", "annotations", name), annotations=annotations)


@OF_A_GRAPH.rule(
    "DynamoGraphDeployment {graph} controls this component deployment and reverts the fields that it sets; other fields "
    "take effect, but the graph does not show them: change {component} there",
    added=True,
)
def a_graph_sets_its_components_back(component: ComponentView, old: ComponentView, facts: Facts) -> Violations:
    """A graph resets the fields that it sets in a component deployment that it controls. Fields that a user adds stay
    until a change of the component replaces the object.
    """
    if component.graph and component.spec != old.spec and facts.user and facts.user not in facts.operators:
        yield broken(component.at, graph=shown(component.graph), component=shown(component.name))
