"""Builders of admission requests, and the facts to answer them with; no server, no cluster."""

from typing import Any

from dynamo_admission.wire import AdmissionRequest, GroupVersionKind, UserInfo
from dynamo_shared.api.embedded import Checker
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS

from tests.building.objects import object_of

#: Knows no types of Kubernetes, so every embedded object passes.
NO_TYPES = Checker.from_documents()


def graph(version: str = "v1beta1", **spec: Any) -> KubeObject:
    """A small graph."""
    components: dict[str, Any] = (
        {"components": [{"name": "Frontend", "type": "frontend", "replicas": 1}]}
        if version == "v1beta1"
        else {"services": {"Frontend": {"componentType": "frontend", "replicas": 1}}}
    )
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS.at(version), "chat", "team", spec={**components, **spec})


def question(obj: Any, old: Any = None, *, user: str = "someone", **fields: Any) -> AdmissionRequest:
    """The API server's request about an object: a creation, or with `old` an update."""
    group, _, version = str(obj.get("apiVersion", "")).partition("/") if isinstance(obj, dict) else ("", "", "")
    kind = str(obj.get("kind", "")) if isinstance(obj, dict) else ""
    given: dict[str, Any] = {
        "uid": "1",
        "kind": GroupVersionKind(group, version, kind),
        "operation": "CREATE" if old is None else "UPDATE",
        "name": "chat",
        "namespace": "team",
        "user_info": UserInfo(user),
        "object": obj,
        "old_object": old,
    }
    return AdmissionRequest(**{**given, **fields})
