"""Warnings about fields without effect: another field replaces them, or nothing reads them."""

from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.untrusted.reading import below, entries, items, mapping, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ALPHA, COMPONENT, GRAPH, RuleSet, Violations, broken, path
from dynamo_shared.api.validation.view import ComponentView, GraphView, of_each_role

UNUSED = RuleSet("Fields without effect", (GRAPH, COMPONENT))
UNUSED_IN_GRAPHS = RuleSet("Fields without effect", (GRAPH,))
UNUSED_IN_COMPONENTS_OF_GRAPHS = RuleSet("Fields without effect", (GRAPH,))


@UNUSED.rule("has no effect: engines load the revision that their own flags name, such as --revision", added=True)
def revisions_are_the_engines(component: ComponentView, _facts: Facts) -> Violations:
    """DynamoModels select components by the name of the model; its revision is only informative."""
    if mapping(component.spec.get("modelRef")).get("revision"):
        yield broken(component.field("modelRef", "revision"))


@UNUSED.rule("has no effect: an endpoint picker does not start without its configuration", added=True, of="eppConfig")
def configuration_of_a_picker_must_exist(component: ComponentView, _facts: Facts) -> Violations:
    """An endpoint picker does not start without its ConfigMap, so the ConfigMap is not optional."""
    at = ("eppConfig", "configMapRef", "optional")
    if below(component.spec, at) is True:
        yield broken(component.field(*at))


@UNUSED.rule("has no effect: checkpointRef names the checkpoint; leave one of the two out", added=True, of="checkpoint")
def a_checkpoint_is_named_once(component: ComponentView, _facts: Facts) -> Violations:
    """A checkpointRef takes precedence over an identity."""
    start = component.start
    if component.checkpoint is not None and start.get("checkpointRef") and start.get("identity") is not None:
        yield broken((*component.checkpoint, "identity"))


@UNUSED.rule(
    "has no effect: a checkpoint of an identity serves every component with that identity, and outlives this component",
    added=True,
    of="checkpoint",
)
def checkpoints_outlive_what_starts_from_them(component: ComponentView, _facts: Facts) -> Violations:
    """A checkpoint of an identity serves all components with that identity, so deletionPolicy does not delete it."""
    start = component.start
    of_identity = component.checkpoint is not None and start.get("identity") is not None
    if of_identity and start.get("deletionPolicy") == "Delete" and not start.get("checkpointRef"):
        yield broken((*(component.checkpoint or ()), "deletionPolicy"))


@UNUSED.rule(
    "has no effect: the DynamoCheckpoint of this identity has its own Job; leave one of the two out", added=True
)
def captures_are_not_of_an_identity(component: ComponentView, _facts: Facts) -> Violations:
    """A component with an identity uses a DynamoCheckpoint, which has its own Job."""
    start = component.start
    if component.checkpoint is not None and start.get("job") is not None and start.get("identity") is not None:
        yield broken((*component.checkpoint, "job"))


_GRACE = "terminationGracePeriodSeconds"


@UNUSED.rule("0 has no effect: pods get the default of their type; write 1 or more", added=True)
@of_each_role
def a_grace_period_is_some_time(component: ComponentView, _facts: Facts) -> Violations:
    """A zero in a field with a default of the platform counts as absent."""
    pod, at = component.pod
    if pod.get(_GRACE) == 0 and pod[_GRACE] is not False:
        yield broken((*at, _GRACE))


SHARED_MEMORY, SHARED_MEMORY_PATH = "shared-memory", "/dev/shm"  # noqa: S108 - not a temporary file
_OWN_SHARED_MEMORY = "the platform's {path} replaces it: set the size in {field}, or set {off} there to keep this one"


@UNUSED.rule(_OWN_SHARED_MEMORY, added=True)
@of_each_role
def shared_memory_is_the_platforms(component: ComponentView, _facts: Facts) -> Violations:
    """The platform's shared memory replaces a volume with its name, and all mounts at its path."""
    if has_no_shared_memory(component):
        return
    field, off = ("sharedMemory.size", "disabled: true") if component.is_alpha else ("sharedMemorySize", "0")
    main, main_at = component.main
    pod, pod_at = component.pod
    volumes = list(entries(pod.get("volumes")))
    # Equal memory is the same for the engine; the volume with the reserved name has its own warning below.
    unnoticed = {SHARED_MEMORY for _, volume in volumes if volume.get("name") == SHARED_MEMORY}
    unnoticed |= {text(volume.get("name")) for _, volume in volumes if _is_memory_as_given(component, volume)}
    mounts = [(main, main_at, "mountPath")]
    if component.has_fields:
        mounts.append((component.spec, component.at, "mountPoint"))
    for owner, at, place in mounts:
        for index, mount in entries(owner.get("volumeMounts")):
            name = text(mount.get("name"))
            if name not in unnoticed and (name == SHARED_MEMORY or mount.get(place) == SHARED_MEMORY_PATH):
                yield broken((*at, "volumeMounts", index), path=SHARED_MEMORY_PATH, field=field, off=off)
    for index, volume in volumes:
        if volume.get("name") == SHARED_MEMORY and not _is_memory_as_given(component, volume):
            yield broken((*pod_at, "volumes", index), path=SHARED_MEMORY_PATH, field=field, off=off)


def _is_memory_as_given(component: ComponentView, volume: dict[str, Any]) -> bool:
    """Whether a volume is memory of the size that the component gives the platform's."""
    own = mapping(volume.get("emptyDir"))
    field = ("sharedMemory", "size") if component.is_alpha else ("sharedMemorySize",)
    size = quantity.amount_of(own.get("sizeLimit"))
    return (
        own.get("medium") == "Memory" and size is not None and size == quantity.amount_of(below(component.spec, field))
    )


#: Fields of the metadata of a pod template that have an effect, or that clients always write.
METADATA_OF_PODS = frozenset({"labels", "annotations", "creationTimestamp"})


@UNUSED.rule("has no effect: pods get only labels and annotations from the metadata of their template", added=True)
@of_each_role
def metadata_of_pods_is_labels_and_annotations(component: ComponentView, _facts: Facts) -> Violations:
    """Pods do not get names, owners or finalizers from a template."""
    metadata, at = component.template_metadata
    for name, value in metadata.items():
        if name not in METADATA_OF_PODS and value:
            yield broken((*at, str(name)))


@UNUSED.rule("has no effect without gpu: set gpu to the number of GPUs", versions=(ALPHA,), added=True)
def kinds_of_gpus_have_a_number(component: ComponentView, _facts: Facts) -> Violations:
    """The resource name of a GPU needs the number of GPUs in gpu."""
    for side in quantity.SIDES:
        given = mapping(below(component.spec, ("resources", side)))
        if given.get("gpuType") and not given.get("gpu"):
            yield broken(component.field("resources", side, "gpuType"))


@UNUSED.rule("has no effect: disabled is true; leave one of the two out", versions=(ALPHA,), added=True)
def disabled_memory_has_no_size(component: ComponentView, _facts: Facts) -> Violations:
    """Disabled shared memory has no size."""
    memory = mapping(component.spec.get("sharedMemory"))
    if memory.get("disabled") is True and memory.get("size") is not None:
        yield broken(component.field("sharedMemory", "size"))


@UNUSED.rule(
    "becomes only a label of the pods: only prefill and decode with componentType worker change what pods run",
    versions=(ALPHA,),
    added=True,
)
def parts_are_those_of_workers(component: ComponentView, _facts: Facts) -> Violations:
    """A subComponentType has an effect only for prefill and decode workers."""
    part = text(component.spec.get("subComponentType"))
    if part and part != component.type:
        yield broken(component.field("subComponentType"))


_SECOND_CACHE = (
    "has no effect: {first} is the compilation cache, and a component has one; this is mounted like any volume"
)
_NO_ENGINE = "has no effect: only workers compile; this is mounted like any volume"


@UNUSED.rule(_SECOND_CACHE, _NO_ENGINE, versions=(ALPHA,), added=True)
def there_is_one_compilation_cache(component: ComponentView, _facts: Facts) -> Violations:
    """The first mount with useAsCompilationCache is the compilation cache, and only workers have one."""
    mounts = items(component.spec.get("volumeMounts"))
    marked = [index for index, each in enumerate(mounts) if _is_cache(each)]
    for number, index in enumerate(marked):
        at = component.field("volumeMounts", index, "useAsCompilationCache")
        if not component.is_worker:
            # Without a path, another rule refuses it.
            if mounts[index].get("mountPoint"):
                yield at, _NO_ENGINE
        elif number:
            yield at, _SECOND_CACHE.format(first=f"volumeMounts[{marked[0]}]")


@UNUSED.rule("has no effect: {winner} replaces it; write everything there", versions=(ALPHA,), added=True)
@of_each_role
def lists_of_the_main_container_replace_those_of_the_service(component: ComponentView, _facts: Facts) -> Violations:
    """Lists of mainContainer replace those of the service, except variables, and mounts at other paths."""
    if not component.has_fields:
        return
    main, at = component.main
    resources = mapping(component.spec.get("resources"))
    paths = {text(mapping(each).get("mountPath")) for each in items(main.get("volumeMounts"))}
    mounted = items(component.spec.get("volumeMounts")) if paths else []
    plain = [each for each in mounted if not _is_cache(each) and text(mapping(each).get("mountPoint")) in paths]
    for own, place, winner, steps in (
        (plain, ("volumeMounts",), main.get("volumeMounts"), ("volumeMounts",)),
        (component.spec.get("envFromSecret"), ("envFromSecret",), main.get("envFrom"), ("envFrom",)),
        (
            resources.get("claims"),
            ("resources", "claims"),
            mapping(main.get("resources")).get("claims"),
            ("resources", "claims"),
        ),
    ):
        if own and winner:
            yield broken(component.field(*place), winner=path((*at, *steps)))


_NAME_OF_MAIN = "has no effect: the container always has the name main"
_SECOND_MAIN = "has no effect: the container main is written in extraPodSpec.mainContainer"


@UNUSED.rule(_NAME_OF_MAIN, _SECOND_MAIN, versions=(ALPHA,), added=True)
@of_each_role
def the_main_container_is_main_container(component: ComponentView, _facts: Facts) -> Violations:
    """The engine's container has a field of its own, and always has the name main."""
    if not component.has_fields:
        return
    main, at = component.main
    if main.get("name") not in (None, "", MAIN):
        yield (*at, "name"), _NAME_OF_MAIN
    for index, container in entries(below(component.spec, ("extraPodSpec", "containers"))):
        if container.get("name") == MAIN:
            yield component.field("extraPodSpec", "containers", index), _SECOND_MAIN


_NO_VIRTUAL_SERVICE = "has no effect without useVirtualService: true; the platform creates an Ingress"


_NO_INGRESS = "has no effect: the platform creates a VirtualService, whose Gateway {gateway} has the certificates"


@UNUSED.rule(_NO_VIRTUAL_SERVICE, _NO_INGRESS, versions=(ALPHA,), added=True, of="ingress")
def gateways_are_of_virtual_services(component: ComponentView, _facts: Facts) -> Violations:
    """A Gateway needs useVirtualService: true, and then tls has an effect only on an additional Ingress with a class."""
    ingress = mapping(component.spec.get("ingress"))
    gateway = ingress.get("virtualServiceGateway")
    if ingress.get("enabled") is not True or not gateway:
        return
    if not ingress.get("useVirtualService"):
        yield component.field("ingress", "virtualServiceGateway"), _NO_VIRTUAL_SERVICE
    elif ingress.get("tls") and not ingress.get("ingressControllerClassName"):
        yield component.field("ingress", "tls"), _NO_INGRESS.format(gateway=shown(gateway))


@UNUSED_IN_COMPONENTS_OF_GRAPHS.rule(
    "has no effect: the name of the service is its key in spec.services, {key}", versions=(ALPHA,), added=True
)
def services_are_called_by_their_key(component: ComponentView, _facts: Facts) -> Violations:
    """The name of a service in a graph is its key."""
    if component.spec.get("serviceName") not in (None, "", component.name):
        yield broken(component.field("serviceName"), key=shown(component.name))


_PLANNERS_ACCOUNT = "planner-serviceaccount"


@UNUSED_IN_COMPONENTS_OF_GRAPHS.rule(
    "has no effect: a planner of a graph runs as {account}, which may scale the graph", added=True
)
def planners_have_their_account(component: ComponentView, _facts: Facts) -> Violations:
    """A planner needs rights that only its ServiceAccount has."""
    pod, at = component.pod
    if component.type == "planner" and pod.get("serviceAccountName") not in (None, "", _PLANNERS_ACCOUNT):
        yield broken((*at, "serviceAccountName"), account=_PLANNERS_ACCOUNT)


@UNUSED_IN_GRAPHS.rule(
    "has no effect: the claim is not created; set create: true, or leave it out", versions=(ALPHA,), added=True
)
def claims_that_are_there_are_not_described(graph: GraphView, _facts: Facts) -> Violations:
    """Size, storage class and access mode apply only to a claim that the platform creates."""
    for index, claim in entries(graph.spec.get("pvcs")):
        for name in ("size", "storageClass", "volumeAccessMode") if claim.get("create") is not True else ():
            if claim.get(name) not in (None, ""):
                yield broken(("spec", "pvcs", index, name))


def _is_cache(mount: Any) -> bool:
    return mapping(mount).get("useAsCompilationCache") is True


def has_no_shared_memory(component: ComponentView) -> bool:
    """Whether a component turns off the platform's shared memory for its pods."""
    if component.is_alpha:
        return mapping(component.spec.get("sharedMemory")).get("disabled") is True
    return quantity.amount_of(component.spec.get("sharedMemorySize")) == 0
