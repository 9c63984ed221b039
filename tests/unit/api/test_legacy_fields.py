"""Fields of a graph that only v1alpha1 has are parsed once for each stored generation."""

import json

import pytest
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.legacy_fields import (
    NO_GRAPH,
    NO_SERVICE,
    LegacyGraph,
    LegacyService,
    legacy_graph,
    legacy_graph_of,
)
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.api.v1beta1 import parse_graph

CLAIM = {"create": True, "name": "models", "size": "1Gi", "storageClass": "fast", "volumeAccessMode": "ReadWriteOnce"}


def stored(host: str, **metadata: object) -> KubeObject:
    """A graph written as v1alpha1, as it is in STATE."""
    service = {
        "componentType": "default",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "ingress": {"enabled": True, "host": host},
        "autoscaling": {"enabled": True, "minReplicas": 1, "maxReplicas": 3},
    }
    written = {
        **DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1").type_meta,
        "metadata": {"name": "g", "namespace": "ns", **metadata},
        "spec": {"pvcs": [CLAIM], "services": {"Api": service, "Plain": {"componentType": "worker"}}},
    }
    return convert(written, DYNAMO_GRAPH_DEPLOYMENTS.api_version)


def parsed(host: str) -> LegacyGraph:
    ingress = {"enabled": True, "host": host}
    autoscaling = {"enabled": True, "minReplicas": 1, "maxReplicas": 3}
    api = LegacyService({"a": "b"}, {"c": "d"}, ingress, "default", autoscaling)
    return LegacyGraph((CLAIM,), {"Api": api, "Plain": LegacyService(type="worker")})


def test_legacy_fields_are_read_equally_from_an_object_and_from_its_type() -> None:
    graph = stored("one")
    assert legacy_graph_of(graph) == legacy_graph(parse_graph(graph)) == parsed("one")


def test_a_generation_is_parsed_once_and_the_next_one_again() -> None:
    first = legacy_graph_of(stored("one", uid="parsed-once", generation=1))
    assert legacy_graph(parse_graph(stored("one", uid="parsed-once", generation=1))) is first
    assert legacy_graph_of(stored("two", uid="parsed-once", generation=2)) == parsed("two")
    assert legacy_graph_of(stored("one", uid="another", generation=1)) is not first


@pytest.mark.parametrize("metadata", [{}, {"annotations": {"nvidia.com/other": "x"}}])
def test_a_graph_never_written_as_v1alpha1_has_no_legacy_fields(metadata: KubeObject) -> None:
    graph = {**stored("one"), "metadata": {"name": "g", "namespace": "ns", "uid": "u", "generation": 1, **metadata}}
    assert legacy_graph_of(graph) is legacy_graph(parse_graph(graph)) is NO_GRAPH


@pytest.mark.parametrize(
    ("failover", "shadows"),
    [
        ({"enabled": True, "mode": "interPod", "numShadows": 3}, 3),
        ({"enabled": True, "mode": "interPod", "numShadows": 1}, None),
        ({"enabled": False, "mode": "interPod", "numShadows": 3}, None),
    ],
)
def test_waiting_engines_are_read_if_v1beta1_cannot_express_them(failover, shadows) -> None:
    mode = {"enabled": True, "mode": "interPod"}
    metadata = {"name": "g", "namespace": "ns"}
    spec = {"services": {"W": {"componentType": "worker", "gpuMemoryService": mode, "failover": failover}}}
    written = {**DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1").type_meta, "metadata": metadata, "spec": spec}
    result = legacy_graph_of(convert(written, DYNAMO_GRAPH_DEPLOYMENTS.api_version))
    assert result.services.get("W", LegacyService()).shadows == shadows


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("labels", ["a"]),
        ("labels", {"a": 5}),
        ("annotations", "a"),
        ("ingress", "chat"),
        ("ingress", {"enabled": True, "host": "chat", "tls": "cert"}),
        ("autoscaling", "up"),
        ("componentType", 5),
        ("", 5),
        ("spec", 5),
        ("spec.services", ["Api"]),
        ("spec.pvcs", 5),
        ("spec.pvcs", [{"name": "models", "create": True}]),
    ],
)
def test_invalid_values_of_the_annotation_are_ignored(path: str, value: object) -> None:
    """A tenant may write them. The renderer and the scaler read the annotation unchecked."""
    steps = path.split(".") if path else []
    kept = {"fields": [[steps, value]]} if path.startswith("spec") else {"components": {"Api": [[steps, value]]}}
    annotations = {PRESERVED_FIELDS: json.dumps({"version": 1, "for": "v1alpha1", **kept})}
    graph = stored("one") | {"metadata": {"name": "g", "namespace": "ns", "annotations": annotations}}
    result = legacy_graph_of(graph)
    assert not result.claims
    assert all(each in (NO_SERVICE, LegacyService(type="worker")) for each in result.services.values())
