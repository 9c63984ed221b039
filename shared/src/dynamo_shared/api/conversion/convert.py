"""An object in another version of its kind, without loss.

What one version can say and the other cannot goes along in one annotation and comes back from there. The functions are
pure: nothing that is given to them changes. What they give back shares parts with it, so it is for reading.
"""

from collections.abc import Callable
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.conversion import component_deployment, envelope, graph, operators, request, scaling_adapter
from dynamo_shared.api.conversion.envelope import Kept
from dynamo_shared.api.conversion.lens import carry
from dynamo_shared.api.conversion.pod import filled
from dynamo_shared.api.untrusted.reading import mapping

Body = dict[str, Any]
Converter = Callable[[Body, dict[str, Any], Kept, str], tuple[Body, Kept]]
VERSIONS = (graph.ALPHA, graph.BETA)


class NotConvertible(ValueError):
    """No conversion leads from an object to the version that is asked for."""


def convert(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """The object in `api_version`, such as `nvidia.com/v1alpha1`; the very object where it is in that already.

    Whatever else is wrong with an object, it is converted. NotConvertible where kind or version has no conversion.
    """
    current, kind = obj.get("apiVersion"), obj.get("kind")
    if current == api_version:
        return obj
    source, target = _version(current), _version(api_version)
    if not isinstance(kind, str) or kind not in KINDS or source is None or target is None:
        raise NotConvertible(f"{kind} has no conversion from {current} to {api_version}")
    converter = _CONVERTERS.get(kind)
    # Server-side apply has parts of objects converted that have none, and the API server takes no answer without it.
    metadata = mapping(obj.get("metadata"))
    if converter is None:
        return {**obj, "apiVersion": api_version, "metadata": metadata}
    part = operators.read(kind, metadata, target)
    metadata = part.metadata
    annotations = envelope.read(metadata, source, target)
    body = {name: value for name, value in obj.items() if name not in envelope.HEAD}
    body, kept = converter(body, metadata, annotations.kept or part.kept, target)
    body = operators.completed(kind, body, part)
    written = envelope.write(metadata, annotations, kept, source, target)
    return {"apiVersion": api_version, "kind": kind, "metadata": written, **body}


def _version(api_version: Any) -> str | None:
    """`v1beta1` of `nvidia.com/v1beta1`, where it is one of those that objects are converted between."""
    if not isinstance(api_version, str):
        return None
    group, _, version = api_version.partition("/")
    return version if group == resources.GROUP and version in VERSIONS else None


def _graph(body: Body, _metadata: dict[str, Any], kept: Kept, target: str) -> tuple[Body, Kept]:
    return graph.convert(body, kept, target)


def _component(body: Body, metadata: dict[str, Any], kept: Kept, target: str) -> tuple[Body, Kept]:
    name = metadata.get("name")
    if target == graph.BETA:
        made, left = carry(component_deployment.lens_to_beta(name), body, kept.fields)
        return component_deployment.unmarked(made), Kept(left)
    body = component_deployment.marked(body)
    made, left = carry(component_deployment.lens_to_alpha(name), body, kept.fields)
    return made, Kept(left)


def _adapter(body: Body, _metadata: dict[str, Any], kept: Kept, target: str) -> tuple[Body, Kept]:
    lens = scaling_adapter.TO_BETA if target == graph.BETA else scaling_adapter.TO_ALPHA
    made, left = carry(lens, body, kept.fields)
    return made, Kept(left)


def _request(body: Body, metadata: dict[str, Any], kept: Kept, target: str) -> tuple[Body, Kept]:
    namespace = filled(metadata.get("namespace"), str)
    lens = request.lens_to_beta(namespace) if target == graph.BETA else request.lens_to_alpha(namespace)
    made, left = carry(lens, body, kept.fields)
    return made, Kept(left)


_CONVERTERS: dict[str, Converter] = {
    resources.DYNAMO_GRAPH_DEPLOYMENTS.kind: _graph,
    resources.DYNAMO_COMPONENT_DEPLOYMENTS.kind: _component,
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind: _adapter,
    resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.kind: _request,
}
#: Not a set: what is asked for may be a list, which has no hash.
UNCHANGED = tuple(each.kind for each in resources.UNCHANGED_IN_V1BETA1)
KINDS = frozenset({*_CONVERTERS, *UNCHANGED})
