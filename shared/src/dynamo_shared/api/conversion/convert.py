"""Lossless conversion of an object to another version of its kind.

Fields that the target version does not have are preserved in an annotation, and restored from it. The functions are
pure: they do not modify their arguments. Results share parts with the arguments, so do not modify them.
"""

from collections.abc import Callable
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.conversion import component_deployment, envelope, graph, operators, request, scaling_adapter
from dynamo_shared.api.conversion.envelope import Preserved
from dynamo_shared.api.conversion.lens import Lens, carry
from dynamo_shared.api.conversion.pod import filled
from dynamo_shared.api.untrusted.reading import mapping

Body = dict[str, Any]
Converter = Callable[[Body, dict[str, Any], Preserved, str], tuple[Body, Preserved]]
VERSIONS = (graph.ALPHA, graph.BETA)


class NotConvertible(ValueError):
    """There is no conversion from an object to the requested version."""


def convert(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """The object in `api_version`, such as `nvidia.com/v1alpha1`; the same object if it has that version.

    Converts also invalid objects. Raises NotConvertible if the kind or the version has no conversion.
    """
    current, kind = obj.get("apiVersion"), obj.get("kind")
    if current == api_version:
        return obj
    source, target = _version(current), _version(api_version)
    if not isinstance(kind, str) or kind not in KINDS or source is None or target is None:
        raise NotConvertible(f"{kind} has no conversion from {current} to {api_version}")
    converter = _CONVERTERS.get(kind)
    # For server-side apply, the API server converts partial objects without metadata, and requires metadata in the result.
    metadata = mapping(obj.get("metadata"))
    if converter is None:
        return {**obj, "apiVersion": api_version, "metadata": metadata}
    part = operators.read(kind, metadata, target)
    metadata = part.metadata
    annotations = envelope.read(metadata, source, target)
    body = {name: value for name, value in obj.items() if name not in envelope.HEAD}
    body, preserved = converter(body, metadata, annotations.preserved or part.preserved, target)
    body = operators.completed(kind, body, part)
    written = envelope.write(metadata, annotations, preserved, source, target)
    return {"apiVersion": api_version, "kind": kind, "metadata": written, **body}


def _version(api_version: Any) -> str | None:
    """The version in `nvidia.com/v1beta1`; None for other groups, and versions without conversion."""
    if not isinstance(api_version, str):
        return None
    group, _, version = api_version.partition("/")
    return version if group == resources.GROUP and version in VERSIONS else None


def _graph(body: Body, _metadata: dict[str, Any], preserved: Preserved, target: str) -> tuple[Body, Preserved]:
    return graph.convert(body, preserved, target)


def _component(body: Body, metadata: dict[str, Any], preserved: Preserved, target: str) -> tuple[Body, Preserved]:
    name = metadata.get("name")
    if target == graph.BETA:
        converted, residue = _carried(component_deployment.lens_to_beta(name), body, preserved)
        return component_deployment.unmarked(converted), residue
    return _carried(component_deployment.lens_to_alpha(name), component_deployment.marked(body), preserved)


def _adapter(body: Body, _metadata: dict[str, Any], preserved: Preserved, target: str) -> tuple[Body, Preserved]:
    return _carried(scaling_adapter.TO_BETA if target == graph.BETA else scaling_adapter.TO_ALPHA, body, preserved)


def _request(body: Body, metadata: dict[str, Any], preserved: Preserved, target: str) -> tuple[Body, Preserved]:
    lens_of = request.lens_to_beta if target == graph.BETA else request.lens_to_alpha
    return _carried(lens_of(filled(metadata.get("namespace"), str)), body, preserved)


def _carried(lens: Lens, body: Body, preserved: Preserved) -> tuple[Body, Preserved]:
    converted, residue = carry(lens, body, preserved.fields)
    return converted, Preserved(residue)


_CONVERTERS: dict[str, Converter] = {
    resources.DYNAMO_GRAPH_DEPLOYMENTS.kind: _graph,
    resources.DYNAMO_COMPONENT_DEPLOYMENTS.kind: _component,
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind: _adapter,
    resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.kind: _request,
}
#: A tuple, because a kind of an invalid object may be a list, which is not hashable.
UNCHANGED = tuple(each.kind for each in resources.UNCHANGED_IN_V1BETA1)
KINDS = frozenset({*_CONVERTERS, *UNCHANGED})
