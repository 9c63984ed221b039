"""Endpoint pickers: one process that a gateway calls, and its configuration."""

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.runtime_version import OF_1_5, has_native_picker, runtime_version
from dynamo_shared.api.untrusted.reading import items, mapping, names_in, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ALPHA, COMPONENT, GRAPH, RuleSet, Violations, broken
from dynamo_shared.api.validation.view import ComponentView, GraphView

PICKERS = RuleSet("Endpoint pickers", (GRAPH, COMPONENT))
PICKERS_OF_GRAPHS = RuleSet("Endpoint pickers", (GRAPH,))

ADVICE_FOR_PICKERS = RuleSet("Endpoint pickers", (GRAPH,))

_EPP = "epp"


@PICKERS_OF_GRAPHS.rule(
    "'epp' needs the Gateway API Inference Extension (inference.networking.k8s.io), which this cluster does not serve: "
    "install it, or use a frontend"
)
def picker_needs_inference_pools(graph: GraphView, facts: Facts) -> Violations:
    """A gateway calls an endpoint picker for an InferencePool, so the cluster must serve this API."""
    if facts.inference_pools is False:
        for component in graph.components:
            if component.type == _EPP:
                yield broken(component.type_at)


_SEVERAL_NODES = "not allowed for an endpoint picker, which runs on one node: leave it out"
_SEVERAL_REPLICAS = "must be 1 for an endpoint picker, not {replicas}"


@PICKERS.rule(_SEVERAL_NODES, _SEVERAL_REPLICAS)
def picker_is_one_process(component: ComponentView, _facts: Facts) -> Violations:
    """An endpoint picker runs on one node. A picker that reads an eppConfig has one replica; later pickers share the requests."""
    if component.type != _EPP:
        return
    if component.nodes > 1:
        yield component.field("multinode"), _SEVERAL_NODES
    if component.replicas is not None and component.replicas != 1 and not _is_native(component):
        yield component.field("replicas"), _SEVERAL_REPLICAS.format(replicas=component.replicas)


_NO_CONFIG = (
    "required for {type} epp of a runtime before 1.5.0: set configMapRef to a key of a ConfigMap, or write the "
    "configuration in config; if the runtime is newer, write its version in runtimeVersionOverride"
)
_CONFIG_OF_OTHER = (
    "not allowed for the endpoint picker of Dynamo {version}, which environment variables configure: leave it out, "
    "or set an image of 1.4 and its version"
)
_NO_SOURCE = "one of configMapRef and config is required"
_TWO_SOURCES = "configMapRef and config are both set, but only one is allowed: leave one of them out"
_NO_CONFIG_MAP = "required: the name of a ConfigMap in the same namespace"


@PICKERS.rule(_NO_CONFIG, _CONFIG_OF_OTHER, _NO_CONFIG_MAP)
def picker_has_a_configuration(component: ComponentView, _facts: Facts) -> Violations:
    """Before runtime 1.5.0 an endpoint picker requires a configuration; later ones have none. A configMapRef has a name."""
    config = component.spec.get("eppConfig")
    if component.type != _EPP:
        return
    stated = text(component.spec.get("runtimeVersionOverride"))
    if config is not None and has_native_picker("", stated):
        yield component.field("eppConfig"), _CONFIG_OF_OTHER.format(version=stated)
    if config is None and not _is_native(component):
        yield component.field("eppConfig"), _NO_CONFIG.format(type=component.words.type)
    reference = mapping(config).get("configMapRef")
    if isinstance(reference, dict) and reference.get("name") in (None, ""):
        yield component.field("eppConfig", "configMapRef", "name"), _NO_CONFIG_MAP


@PICKERS.rule(_NO_SOURCE, _TWO_SOURCES, versions=(ALPHA,), of="eppConfig")
def picker_has_one_configuration(component: ComponentView, _facts: Facts) -> Violations:
    """The configuration is either in a ConfigMap or inline. In v1beta1 the schema requires this."""
    config = component.spec.get("eppConfig")
    if component.type != _EPP or not isinstance(config, dict):
        return
    given = [name for name in ("configMapRef", "config") if config.get(name) is not None]
    if len(given) != 1:
        yield component.field("eppConfig"), _TWO_SOURCES if given else _NO_SOURCE


@PICKERS.rule(
    "only for componentType epp; componentType is {type}: leave one of the two out", versions=(ALPHA,), added=True
)
def others_have_no_picker_configuration(component: ComponentView, _facts: Facts) -> Violations:
    """Only an endpoint picker can have this configuration. In v1beta1 the schema requires this."""
    if component.type != _EPP and component.spec.get("eppConfig") is not None:
        observed = shown(component.spec["componentType"]) if component.spec.get("componentType") else "not set"
        yield broken(component.field("eppConfig"), type=observed)


def _is_native(component: ComponentView) -> bool:
    """Whether pods start the endpoint picker of 1.5.0 and later. With a configuration they start the earlier one."""
    version = text(component.spec.get("runtimeVersionOverride"))
    return component.spec.get("eppConfig") is None and has_native_picker(text(component.image.value), version)


@ADVICE_FOR_PICKERS.rule(
    "has no effect: an endpoint picker has one replica, and admission refuses another number; leave it out", added=True
)
def picker_is_not_scaled(component: ComponentView, _facts: Facts) -> Violations:
    """An endpoint picker with a configuration has one replica, so its scaling adapter has no use."""
    if component.type == _EPP and component.adapted and not _is_native(component):
        yield broken(component.field("scalingAdapter"))


@ADVICE_FOR_PICKERS.rule(
    "Dynamo {version} has a new endpoint picker, which reads no eppConfig; with eppConfig, pods start the picker "
    "of 1.4 and earlier: leave eppConfig out, or set an image of 1.4 or earlier",
    added=True,
    of="eppConfig",
)
def picker_is_of_a_runtime_that_has_it(component: ComponentView, _facts: Facts) -> Violations:
    """Images of Dynamo 1.5.0 and later lack the endpoint picker that reads a configuration. A tag may state another version."""
    version = runtime_version(text(component.image.value))
    is_stated = component.spec.get("runtimeVersionOverride") or component.spec.get("eppConfig") is None
    if component.type == _EPP and not is_stated and version is not None and version >= OF_1_5:
        yield broken(component.image.at, version=version)


_CONFIG, _CONFIG_PATH = "epp-config", "/etc/epp"
_CACHE = "hf-cache"
_NO_VOLUME = (
    "replaces the platform's volumes, so {missing}, which main mounts, becomes a claim that must exist: add this "
    "volume, too"
)
_NO_MOUNT = "replaces the platform's mounts, so the picker has no configuration: mount {volume} at {path}, too"


@ADVICE_FOR_PICKERS.rule(_NO_VOLUME, _NO_MOUNT, added=True)
def picker_keeps_its_configuration(component: ComponentView, _facts: Facts) -> Violations:
    """Volumes and mounts in the template of an endpoint picker replace the platform's, which its configuration or cache needs."""
    if component.type != _EPP:
        return
    (pod, pod_at), (main, main_at) = component.pod, component.main
    mounts = items(main.get("volumeMounts"))
    needed = _CACHE if _is_native(component) else _CONFIG
    if needed == _CONFIG and mounts and all(mapping(each).get("mountPath") != _CONFIG_PATH for each in mounts):
        yield (*main_at, "volumeMounts"), _NO_MOUNT.format(volume=_CONFIG, path=_CONFIG_PATH)
    volumes = names_in(pod.get("volumes"))
    mounted = names_in(mounts) if mounts else [needed]
    if volumes and needed in mounted and needed not in volumes:
        yield (*pod_at, "volumes"), _NO_VOLUME.format(missing=needed)
