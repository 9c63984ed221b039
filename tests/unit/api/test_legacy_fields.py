"""What only v1alpha1 can say of a graph is parsed once for each generation that is stored."""

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
    """A graph that was written as v1alpha1, as STATE has it."""
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


def test_what_has_no_place_in_v1beta1_is_read_alike_of_an_object_and_of_its_type() -> None:
    graph = stored("one")
    assert legacy_graph_of(graph) == legacy_graph(parse_graph(graph)) == parsed("one")


def test_a_generation_is_parsed_once_and_the_next_one_again() -> None:
    first = legacy_graph_of(stored("one", uid="parsed-once", generation=1))
    assert legacy_graph(parse_graph(stored("one", uid="parsed-once", generation=1))) is first
    assert legacy_graph_of(stored("two", uid="parsed-once", generation=2)) == parsed("two")
    assert legacy_graph_of(stored("one", uid="another", generation=1)) is not first


@pytest.mark.parametrize("metadata", [{}, {"annotations": {"nvidia.com/other": "x"}}])
def test_a_graph_that_never_was_v1alpha1_has_none(metadata: KubeObject) -> None:
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
def test_engines_that_wait_are_read_where_they_are_more_than_v1beta1_can_say(failover, shadows) -> None:
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
def test_what_a_tenant_writes_into_the_annotation_and_no_schema_allows_is_passed_over(path: str, value: object) -> None:
    """Those who render, and those who scale, read it as it stands."""
    steps = path.split(".") if path else []
    kept = {"fields": [[steps, value]]} if path.startswith("spec") else {"components": {"Api": [[steps, value]]}}
    annotations = {PRESERVED_FIELDS: json.dumps({"version": 1, "for": "v1alpha1", **kept})}
    graph = stored("one") | {"metadata": {"name": "g", "namespace": "ns", "annotations": annotations}}
    result = legacy_graph_of(graph)
    assert not result.claims
    assert all(each in (NO_SERVICE, LegacyService(type="worker")) for each in result.services.values())
