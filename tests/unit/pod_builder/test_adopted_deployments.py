"""The pod-builder's memory of adopted Deployments of the reference operator."""

from typing import Any

from dynamo_pod_builder.applier import Applier
from dynamo_shared.api.resources import DEPLOYMENTS, key_of
from dynamo_shared.state import ObjectCache


def test_a_deleted_adopted_deployment_is_forgotten() -> None:
    cache, kube = ObjectCache(), None
    applier = Applier(kube, cache)  # type: ignore[arg-type]
    deployment: dict[str, Any] = {"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1"}}
    cache.put(DEPLOYMENTS, deployment)
    applier._adopted["u"] = "hash"
    cache.forget(DEPLOYMENTS, [key_of(deployment)])
    assert not applier._adopted
