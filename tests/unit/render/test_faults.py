"""Errors of the reference operator that no other file covers: the platform is correct here."""

from dynamo_pod_builder.render.config import NEW_COMPONENT
from dynamo_pod_builder.render.context import context_of
from dynamo_pod_builder.render.network.service import needs_service
from dynamo_shared.api.v1beta1 import parse_component

from .building import CONFIG

ETCD = {"nvidia.com/dynamo-discovery-backend": "etcd"}


def service_of(type_: str) -> bool:
    metadata = {"name": "c", "namespace": "n"}
    spec = {"type": type_, "podTemplate": {"metadata": {"annotations": ETCD}}}
    obj = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoComponentDeployment", "metadata": metadata, "spec": spec}
    return needs_service(context_of(parse_component(obj), CONFIG, NEW_COMPONENT))


def test_the_service_of_a_picker_exists_with_every_discovery() -> None:
    """The InferencePool names it (behaviour, section 11.6)."""
    assert service_of("epp")
    assert service_of("frontend")
    assert not service_of("worker")
