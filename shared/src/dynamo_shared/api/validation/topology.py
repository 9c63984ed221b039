"""Topology constraints: complete, known to the cluster, and for a component not wider than for the graph."""

from collections.abc import Iterator, Sequence
from typing import Any

from dynamo_shared.api.field_errors import shown, suggestion_for
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import mapping, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.provider_override import overrides_of
from dynamo_shared.api.validation.rule_set import CREATED, GRAPH, RuleSet, Violations, broken, listed
from dynamo_shared.api.validation.view import ComponentView, GraphView

AT: Location = ("spec", "topologyConstraint")

TOPOLOGY = RuleSet("Topology", (GRAPH,))
TOPOLOGY_AT_CREATION = RuleSet("Topology", (GRAPH,), CREATED)

_NO_CONSTRAINT_OF_GRAPH = (
    "required, because {names} {have} a topologyConstraint: set {field} to the {kind} with the domains"
)
_NO_DOMAIN = (
    "required, because no {component} has a topologyConstraint: set it here for all, or in each {component} that "
    "needs it"
)


@TOPOLOGY.rule(_NO_CONSTRAINT_OF_GRAPH, _NO_DOMAIN)
def a_constraint_has_a_domain(graph: GraphView, facts: Facts) -> Violations:
    """A graph with any topology constraint names its topology, and the graph or a component has a pack domain."""
    constraint = graph.spec.get("topologyConstraint")
    own = [each.name for each in graph.components if each.spec.get("topologyConstraint") is not None]
    if constraint is None and own:
        have = "has" if len(own) == 1 else "have"
        field = graph.words.topology_name
        message = _NO_CONSTRAINT_OF_GRAPH.format(names=listed(own), have=have, field=field, kind=facts.topology_kind)
        yield AT, message
    if isinstance(constraint, dict) and not constraint.get("packDomain") and not own:
        yield (*AT, "packDomain"), _NO_DOMAIN.format(component=graph.words.component)


_NO_TOPOLOGY = "{name} is not a {kind} of this cluster{hint}"
_UNKNOWN_DOMAIN = "{domain} is not a domain of {topology}; one of {domains}"
_WIDER = "{domain} is wider than {whole} of spec.topologyConstraint; one of {domains}"


@TOPOLOGY_AT_CREATION.rule(_NO_TOPOLOGY, _UNKNOWN_DOMAIN, _WIDER)
def domains_exist_and_nest(graph: GraphView, facts: Facts) -> Violations:
    """The topology must exist and have the domains; a component's domain is the graph's or a narrower one.

    Checked only at creation, and only if Grove runs the graph: constraints cannot change later, but topologies can.
    """
    constraint = mapping(graph.spec.get("topologyConstraint"))
    name = text(constraint.get(graph.words.topology_name))
    if facts.topologies is None or graph.of_grove(facts.grove) is False or not name:
        return
    domains = facts.topologies.get(name)
    if domains is None:
        hint = suggestion_for(name, facts.topologies) or f"; there are: {listed(facts.topologies)}"
        yield (
            (*AT, graph.words.topology_name),
            _NO_TOPOLOGY.format(name=shown(name), kind=facts.topology_kind, hint=hint),
        )
        return
    whole = constraint.get("packDomain")
    of = f"{facts.topology_kind} {shown(name)}"
    yield from _unknown(whole, (*AT, "packDomain"), of, domains)
    first = domains.index(whole) if whole in domains else 0
    for component in graph.components:
        domain, at = _domain(component)
        yield from _unknown(domain, at, of, domains)
        if domain in domains and domains.index(domain) < first:
            allowed = listed(domains[first:])
            yield at, _WIDER.format(domain=shown(domain), whole=shown(whole), domains=allowed)


def _domain(component: ComponentView) -> tuple[Any, Location]:
    constraint = mapping(component.spec.get("topologyConstraint"))
    return constraint.get("packDomain"), component.field("topologyConstraint", "packDomain")


def _unknown(domain: Any, at: Location, topology: str, domains: Sequence[str]) -> Iterator[tuple[Location, str]]:
    if isinstance(domain, str) and domain and domain not in domains:
        yield at, _UNKNOWN_DOMAIN.format(domain=shown(domain), topology=topology, domains=listed(domains))


TOPOLOGY_WITHOUT_EFFECT = RuleSet("Topology", (GRAPH,))


@TOPOLOGY_WITHOUT_EFFECT.rule(
    "has no effect: only Grove packs pods by topology, and Grove does not run this graph", added=True
)
def constraints_without_grove_do_nothing(graph: GraphView, facts: Facts) -> Violations:
    """Constraints are stored, but have an effect only if Grove runs the graph."""
    if graph.of_grove(facts.grove) is False:
        if graph.spec.get("topologyConstraint") is not None:
            yield broken(AT)
        for override in overrides_of(graph):
            if override.minimum is None or override.constraint is not None:
                yield broken(override.at)
