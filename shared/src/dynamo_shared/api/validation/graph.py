"""Requirements of a graph as a whole: components, at most one endpoint picker, complete claims, a complete restart order."""

from dynamo_shared.api import quantity
from dynamo_shared.api.embedded.rules.names import wrong_object_name
from dynamo_shared.api.engines import BACKENDS
from dynamo_shared.api.field_errors import shown, suggestion_for
from dynamo_shared.api.registry.annotations import ENABLE_GROVE, KUBE_DISCOVERY_MODE, WORKLOAD_PROVIDER
from dynamo_shared.api.untrusted.reading import below, entries, items, mapping, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ALPHA, GRAPH, RuleSet, Violations, broken, listed, path
from dynamo_shared.api.validation.view import GraphView

GRAPHS = RuleSet("Graphs", (GRAPH,))


@GRAPHS.rule("at least one {component} is needed")
def has_a_component(graph: GraphView, _facts: Facts) -> Violations:
    """A graph has at least one component."""
    if graph.names == ():
        yield broken(graph.at, component=graph.words.component)


@GRAPHS.rule(
    "a graph has at most one service of componentType epp; {first} is another one", versions=(ALPHA,), added=True
)
def has_at_most_one_picker(graph: GraphView, _facts: Facts) -> Violations:
    """A graph has one pool of workers, so it has one endpoint picker. In v1beta1 the schema requires this."""
    pickers = [component for component in graph.components if component.type == "epp"]
    for component in pickers[1:]:
        yield broken(component.type_at, first=path(pickers[0].at))


_EMPTY_CLAIM_NAME = "must not be empty"
_INCOMPLETE_CLAIM = (
    "must not be {value}: with create: true the platform creates the claim from size, storageClass and volumeAccessMode"
)


@GRAPHS.rule(_EMPTY_CLAIM_NAME, _INCOMPLETE_CLAIM, versions=(ALPHA,))
def claims_are_complete(graph: GraphView, _facts: Facts) -> Violations:
    """Claims have names. A claim that the platform creates has a size, a storage class and an access mode."""
    for index, claim in entries(graph.spec.get("pvcs")):
        at = ("spec", "pvcs", index)
        if claim.get("name") == "":
            yield (*at, "name"), _EMPTY_CLAIM_NAME
        if claim.get("create") is not True:
            continue
        for field in ("storageClass", "volumeAccessMode"):
            if claim.get(field) == "":
                yield (*at, field), _INCOMPLETE_CLAIM.format(value="empty")
        if quantity.amount_of(claim.get("size")) == 0:
            yield (*at, "size"), _INCOMPLETE_CLAIM.format(value=shown(claim["size"]))


@GRAPHS.rule("{problem}", added=True)  # the messages for names
def priority_class_has_a_name(graph: GraphView, _facts: Facts) -> Violations:
    """The PriorityClass of a graph must have a valid object name."""
    if problem := wrong_object_name(text(graph.spec.get("priorityClassName"))):
        yield ("spec", "priorityClassName"), problem


#: Characters of a restart id: all pods, and what the platform keeps of each pod, have it.
_MAX_RESTART_ID = 1024


@GRAPHS.rule(
    f"has {{length}} characters, and every pod gets it as an annotation: write at most {_MAX_RESTART_ID:,}", added=True
)
def restart_id_is_short(graph: GraphView, _facts: Facts) -> Violations:
    """The id of a restart has at most 1,024 characters."""
    length = len(text(below(graph.spec, ("restart", "id"))))
    if length > _MAX_RESTART_ID:
        yield broken(("spec", "restart", "id"), length=f"{length:,}")


_ORDER_OF_PARALLEL = "not allowed with type Parallel, which restarts all at once: leave it out, or use Sequential"
_NAMED_TWICE = "{name} is already at [{first}]: name each {component} once"
_UNKNOWN_IN_ORDER = "{name} is not a {component} of this graph{hint}"
_INCOMPLETE_ORDER = "lacks {missing}: name every {component} once, or leave order out for alphabetical order"


@GRAPHS.rule(_ORDER_OF_PARALLEL, _NAMED_TWICE, _UNKNOWN_IN_ORDER, _INCOMPLETE_ORDER)
def restart_order_names_every_component_once(graph: GraphView, _facts: Facts) -> Violations:
    """The order of a sequential restart names each component exactly once, and nothing else."""
    strategy = mapping(below(graph.spec, ("restart", "strategy")))
    order = items(strategy.get("order"))
    if not order or graph.names is None:
        return
    at = ("spec", "restart", "strategy", "order")
    word = graph.words.component
    if strategy.get("type") == "Parallel":
        yield at, _ORDER_OF_PARALLEL
        return
    known: dict[str, int] = {}
    names = frozenset(graph.names)
    for index, name in enumerate(order):
        if not isinstance(name, str):
            continue
        first = known.setdefault(name, index)
        if first != index:
            yield (*at, index), _NAMED_TWICE.format(name=shown(name), first=first, component=word)
        elif name not in names:
            hint = suggestion_for(name, graph.names) or f"; one of {listed(graph.names)}"
            yield (*at, index), _UNKNOWN_IN_ORDER.format(name=shown(name), component=word, hint=hint)
    missing = [name for name in graph.names if name not in known]
    if missing:
        yield at, _INCOMPLETE_ORDER.format(missing=listed(missing), component=word)


@GRAPHS.rule(
    "must be 'container'{observed}: {field} runs several engines in one pod, and discovery must register each of them"
)
def failover_in_a_pod_needs_discovery_of_containers(graph: GraphView, _facts: Facts) -> Violations:
    """If engines fail over within a pod, the graph's annotation must select discovery by container."""
    mode = graph.annotations.get(KUBE_DISCOVERY_MODE)
    if mode == "container":
        return
    for component in graph.components:
        if component.failover is not None and not component.failover.inter_pod:
            observed = "" if mode is None else f", not {shown(mode)}"
            yield broken(
                ("metadata", "annotations", KUBE_DISCOVERY_MODE), observed=observed, field=path(component.failover.at)
            )
            return


_GROVE_IS_OFF = "{mode} needs Grove, which this platform does not use: write {other}, or leave gpuMemoryService out"
_GROVE_IS_OPTED_OUT = (
    "{mode} needs Grove, which the annotation {annotation} disables for this graph: remove the annotation"
)
_ONLY_VLLM = "must be vllm, not {backend}: {field} is {mode}, which only vLLM supports"


@GRAPHS.rule(_GROVE_IS_OFF, _GROVE_IS_OPTED_OUT, _ONLY_VLLM)
def gpu_memory_between_pods_needs_grove_and_vllm(graph: GraphView, facts: Facts) -> Violations:
    """Pods can share GPU memory only if the backend is vLLM and Grove runs the graph."""
    sharing = [each.gms for each in graph.components if each.gms is not None and each.gms.inter_pod]
    if graph.of_grove(facts.grove) is False:
        for gms in sharing:
            if facts.grove is False:
                message = _GROVE_IS_OFF.format(mode=shown(gms.mode), other=graph.words.intra_pod)
            else:
                by = WORKLOAD_PROVIDER if graph.provider else ENABLE_GROVE
                message = _GROVE_IS_OPTED_OUT.format(mode=shown(gms.mode), annotation=by)
            yield (*gms.at, "mode"), message
    backend = graph.spec.get("backendFramework")
    # Another rule refuses a backend that does not exist.
    if sharing and (backend in (None, "") or text(backend) in BACKENDS) and not _shares_memory(backend):
        observed = shown(text(backend)) if backend else "unset"
        field, mode = path((*sharing[0].at, "mode")), shown(sharing[0].mode)
        yield ("spec", "backendFramework"), _ONLY_VLLM.format(backend=observed, field=field, mode=mode)


def _shares_memory(backend: str | None) -> bool:
    engine = BACKENDS.get(backend or "")
    return engine is not None and engine.pods.shares_memory_between_pods
