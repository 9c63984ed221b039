"""Names of the objects that a graph creates: admission refuses names that Kubernetes or Grove would refuse later."""

from collections.abc import Sequence

from dynamo_shared.api.component_names import LEADERS, component_deployment, is_name
from dynamo_shared.api.dynamo_namespace import dynamo_namespace
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.registry.labels import GRAPH_DEPLOYMENT_NAME
from dynamo_shared.api.untrusted.reading import mapping, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ALPHA, COMPONENT, GRAPH, RuleSet, Violations, broken, path
from dynamo_shared.api.validation.view import ComponentView, GraphView

#: Longest name of a Service (RFC 1035) and longest label value. Characters.
MAX_LABEL = 63
#: Grove's limit for the names of a PodCliqueSet, a scaling group and a clique together. Characters.
MAX_GROVE = 45
#: The name of a PodCliqueSet is not shortened below this. Characters.
_SHORTEST_SET = 8
#: `-` and the hash in the names of worker Deployments. Characters.
_WORKER_HASH = 9

NAMES = RuleSet("Names", (GRAPH,))
NAMES_ALONE = RuleSet("Names", (COMPONENT,))

_NO_NAME = (
    "{name} is not a valid service name: letters, digits and '-', a letter or digit first and last, "
    "at most 63 characters; rename it"
)
_SAME_NAME = "differs from {other} in case only, and their objects would have the same names; rename one of them"


@NAMES.rule(_NO_NAME, _SAME_NAME, versions=(ALPHA,), added=True)
def services_have_names_of_components(graph: GraphView, _facts: Facts) -> Violations:
    """Keys of services become component names in v1beta1, so they have the same form, and differ by more than case."""
    known: dict[str, str] = {}
    for name in graph.names or ():
        if not is_name(name):
            yield (*graph.at, name), _NO_NAME.format(name=shown(name))
        first = known.setdefault(name.lower(), name)
        if first != name:
            yield (*graph.at, name), _SAME_NAME.format(other=path((*graph.at, first)))


@NAMES.rule(
    "results in a name of {length} characters ({name}), but Kubernetes allows 63: shorten this name or metadata.name by {excess}",
    added=True,
)
def objects_of_components_have_names(graph: GraphView, facts: Facts) -> Violations:
    """The Deployment and Service of a component are named after graph and component; workers get a suffix of 8 characters."""
    if not graph.name:
        return
    hashed = graph.of_grove(facts.grove) is False
    for component in graph.components:
        if not component.name or len(component.name) > MAX_LABEL:
            continue
        suffix = "-<hash>" if hashed and component.is_worker else ""
        name = component_deployment(graph.name, component.name)
        length = len(name) + (_WORKER_HASH if suffix else 0)
        if length > MAX_LABEL:
            yield broken(component.name_at, length=length, name=f"{name}{suffix}", excess=length - MAX_LABEL)


_DIGIT_FIRST = "begins with {first}, but the names of Services begin with this name, so it must begin with a letter"
_LONG_NAMESPACE = (
    "results in the Dynamo namespace {name} of {length} characters, but a label value has at most 63: shorten it "
    "by {excess}"
)


@NAMES.rule(_DIGIT_FIRST, _LONG_NAMESPACE, added=True)
def graph_gives_names(graph: GraphView, _facts: Facts) -> Violations:
    """The names of a graph's Services begin with the graph's name, and its Dynamo namespace, a label value, ends with it."""
    own = any(each.spec.get("globalDynamoNamespace") is not True for each in graph.components)
    yield from _of_deployment(graph.name, graph.namespace, own=own)


@NAMES_ALONE.rule(_DIGIT_FIRST, _LONG_NAMESPACE, added=True)
def component_deployment_gives_names(component: ComponentView, _facts: Facts) -> Violations:
    """The name of a component deployment without a graph follows the same rule as a graph's name."""
    metadata = component.metadata
    # A component deployment that a graph created has the graph's Dynamo namespace.
    of_graph = metadata.get("ownerReferences") or GRAPH_DEPLOYMENT_NAME in mapping(metadata.get("labels"))
    own = component.spec.get("globalDynamoNamespace") is not True and not of_graph
    yield from _of_deployment(text(metadata.get("name")), text(metadata.get("namespace")), own=own)


@NAMES_ALONE.rule(
    "results in a Service name of {length} characters, but Kubernetes allows 63: shorten it by {excess}", added=True
)
def component_deployment_names_its_service(component: ComponentView, _facts: Facts) -> Violations:
    """The Service of a component deployment has the name of the component deployment."""
    name = text(component.metadata.get("name"))
    if len(name) > MAX_LABEL:
        yield broken(("metadata", "name"), length=len(name), excess=len(name) - MAX_LABEL)


@NAMES_ALONE.rule(_NO_NAME, versions=(ALPHA,), added=True)
def service_name_is_a_name_of_a_component(component: ComponentView, _facts: Facts) -> Violations:
    """The serviceName of a component deployment becomes a component name in v1beta1."""
    name = text(component.spec.get("serviceName"))
    if name and not is_name(name):
        yield component.name_at, _NO_NAME.format(name=shown(name))


def _of_deployment(name: str, namespace: str, *, own: bool) -> Violations:
    if name and not ("a" <= name[0].lower() <= "z"):
        yield ("metadata", "name"), _DIGIT_FIRST.format(first=shown(name[0]))
    derived = dynamo_namespace(namespace, name)
    if own and name and namespace and len(derived) > MAX_LABEL:
        message = _LONG_NAMESPACE.format(name=shown(derived), length=len(derived), excess=len(derived) - MAX_LABEL)
        yield ("metadata", "name"), message


@NAMES.rule("results in names of {length} characters in total ({parts}), but Grove allows 45: shorten it by {excess}")
def grove_has_room_for_names(graph: GraphView, facts: Facts) -> Violations:
    """With Grove, the names of the set, a scaling group and a clique have at most 45 characters together.

    If they are longer, the platform shortens the name of the set, to no less than eight characters.
    """
    if not graph.of_grove(facts.grove) or not graph.name:
        return
    parts = [(component, _grove_names(component)) for component in graph.components if component.name]
    longest = max((sum(map(len, names)) for _, names in parts), default=0)
    of_set = min(len(graph.name), max(_SHORTEST_SET, MAX_GROVE - longest))
    for component, names in parts:
        length = of_set + sum(map(len, names))
        if length > MAX_GROVE:
            # Each of them contains the name once.
            excess = -(-(length - MAX_GROVE) // len(names))
            words = " + ".join((f"{of_set} of the graph", *names))
            yield broken(component.name_at, length=length, parts=words, excess=excess)


def _grove_names(component: ComponentView) -> Sequence[str]:
    """Names of a component's scaling group, if it has one, and of its longest clique."""
    name = component.name.lower()
    if component.gms is not None and component.gms.inter_pod:
        cliques = [f"{name}-gms-0"] + ([f"{name}-wkr-{component.nodes - 1}"] if component.nodes > 1 else [])
        return name, max(cliques, key=len)
    if component.nodes > 1:
        return name, f"{name}-{LEADERS}"
    return (name, name) if component.is_forced_group else (name,)
