"""Renders manifests without any server: calls the pod-builder's own rendering, level by level.

The results have no owner references: these need the uid of an owner that does not exist yet.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dynamo_pod_builder import render
from dynamo_pod_builder.claims import claimed
from dynamo_shared.api import v1alpha1
from dynamo_shared.api.errors import FieldError, InvalidManifest
from dynamo_shared.api.manifest import Manifest, load_manifests
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import KAI_SCHEDULER_QUEUE
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey, Resource
from dynamo_shared.api.untrusted.reading import mapping
from dynamo_shared.api.v1beta1 import (
    DynamoComponentDeployment,
    DynamoGraphDeployment,
    parse_component,
    parse_graph,
)
from dynamo_shared.api.validation import Facts, validate

from dynamo_ctl import embedded_types
from dynamo_ctl.claims import Claims
from dynamo_ctl.commands.convert.conversion import in_version
from dynamo_ctl.files import NotUsable

_Rendered = (
    DynamoGraphDeployment
    | DynamoComponentDeployment
    | v1alpha1.DynamoGraphDeployment
    | v1alpha1.DynamoComponentDeployment
)
UID = "00000000-0000-0000-0000-000000000000"


def manifests_of(
    text: str, namespace: str, facts: Facts, warn: Callable[[str], None] = lambda _: None
) -> list[Manifest | KubeObject]:
    """The manifests of a text; manifests of other kinds stay unchanged.

    `namespace`: the namespace of manifests that name none. Applies the rules of admission, with the knowledge of
    `facts`; `warn` gets the warnings. Raises NotUsable.
    """
    try:
        return load_manifests(text, lambda obj: _by_rules(obj, namespace, facts, warn), embedded_types.errors)
    except InvalidManifest as error:
        raise NotUsable([str(each) for each in error.errors]) from error


def objects_of(
    manifests: Iterable[Manifest | KubeObject], namespace: str, config: render.RenderConfig, claims: Claims
) -> list[KubeObject]:
    """The objects of all graphs and components among manifests, in the order of their creation.

    `namespace`: the namespace of manifests that name none. Manifests of other kinds are ignored. Raises NotUsable.
    """
    objects: list[KubeObject] = []
    reasons: list[str] = []
    for manifest in manifests:
        if not isinstance(manifest, _Rendered):
            continue
        title = f"{manifest.kind} {manifest.metadata.name}"
        try:
            objects += [_clean(obj) for obj in _descendants(manifest, namespace, config, claims)]
        except render.RenderError as error:
            reasons.append(f"{title}: {error}")
        except InvalidManifest as error:
            # v1alpha1 accepts values that v1beta1 refuses, such as a service name that is not a valid component name.
            reasons += [f"{title}: in v1beta1, {each}" for each in error.errors]
    if reasons:
        raise NotUsable(reasons)
    return objects


def _by_rules(obj: KubeObject, namespace: str, facts: Facts, warn: Callable[[str], None]) -> Iterable[FieldError]:
    metadata = mapping(obj.get("metadata"))
    result = validate({**obj, "metadata": {"namespace": namespace, **metadata}}, None, facts)
    for warning in result.warnings:
        warn(f"{obj.get('kind')} {metadata.get('name', '')}: {warning}")
    return result.errors


def created(obj: KubeObject) -> KubeObject:
    """An object with a uid, which rendering of its children needs. It has no generation, because the pod-builder caches
    stored objects by generation.
    """
    metadata = {name: value for name, value in obj["metadata"].items() if name != "generation"}
    return {**obj, "metadata": {**metadata, "uid": UID}}


def _descendants(
    manifest: _Rendered, namespace: str, config: render.RenderConfig, claims: Claims
) -> Iterator[KubeObject]:
    def component(obj: KubeObject) -> list[KubeObject]:
        gpus = claimed(find, obj["metadata"]["namespace"], obj["spec"])
        return render.component_children(parse_component(created(obj)), config, render.ObservedComponent(claimed=gpus))

    def find(resource: Resource, key: ObjectKey) -> KubeObject | None:
        return claims.get((resource, key))

    written = in_version(manifest, DYNAMO_COMPONENT_DEPLOYMENTS.version)
    owner = {**written, "metadata": {"namespace": namespace, **written["metadata"]}}
    if owner["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        yield from component(owner)
        return
    graph = parse_graph(created(owner))
    specs = owner["spec"].get("components") or ()
    around = render.ObservedGraph(
        claimed={each["name"]: claimed(find, graph.metadata.namespace, each) for each in specs}
    )
    for child in render.graph_children(graph, _with_its_queue(graph, config), around):
        yield child
        if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
            yield from component(child)


def _with_its_queue(graph: DynamoGraphDeployment, config: render.RenderConfig) -> render.RenderConfig:
    """The configuration with the KAI queue that a graph names: without a cluster, the queue is assumed to exist."""
    named = graph.metadata.annotations.get(KAI_SCHEDULER_QUEUE, "").strip()
    if not named and config.kai_queues is None:
        return config
    return replace(config, kai_queues=frozenset({named or render.DEFAULT_QUEUE}))


def _clean(obj: KubeObject) -> KubeObject:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "ownerReferences"}
    return {**obj, "metadata": metadata}
