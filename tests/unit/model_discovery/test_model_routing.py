"""Which models are looked at when something changes."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_model_discovery.models.workers import find_workers, matters
from dynamo_model_discovery.routing import index, kept, tasks_for
from dynamo_shared.api.base_models import base_model_hash
from dynamo_shared.api.resources import DYNAMO_MODELS, ENDPOINT_SLICES, PODS, SERVICES, ObjectKey, Resource
from dynamo_shared.bus import ObjectCache

LABEL = "nvidia.com/dynamo-base-model-hash"


def model(name: str, base: str = "base", namespace: str = "prod", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoModel",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}-{name}",
            "resourceVersion": "1",
            "generation": 1,
            **metadata,
        },
        "spec": {"modelName": name, "baseModelName": base},
    }


def labelled(base: str = "base", namespace: str = "prod", **fields: Any) -> dict[str, Any]:
    labels = {LABEL: base_model_hash(base)}
    return {"metadata": {"name": "x", "namespace": namespace, "uid": "u", "labels": labels}, **fields}


@pytest.fixture
def cache() -> ObjectCache:
    made = ObjectCache()
    index(made)
    for each in (model("a"), model("b"), model("c", "other"), model("d", namespace="dev")):
        made.put(DYNAMO_MODELS, each)
    return made


def woken(cache: ObjectCache, resource: Resource, old: dict[str, Any] | None, new: dict[str, Any] | None) -> set[str]:
    obj = new or old
    assert obj is not None
    key = ObjectKey(obj["metadata"]["namespace"], obj["metadata"]["name"])
    return {f"{task.key.namespace}/{task.key.name}" for task in tasks_for(cache, resource, key, old, new)}


@pytest.mark.parametrize("resource", [PODS, ENDPOINT_SLICES])
def test_models_of_the_base_in_the_namespace(cache: ObjectCache, resource: Resource):
    assert woken(cache, resource, None, labelled()) == {"prod/a", "prod/b"}
    assert woken(cache, resource, labelled(), None) == {"prod/a", "prod/b"}
    assert woken(cache, resource, None, labelled(namespace="dev")) == {"dev/d"}
    assert woken(cache, resource, None, labelled("nobody's")) == set()


def test_a_pod_that_moves_to_another_base_wakes_both(cache: ObjectCache):
    assert woken(cache, PODS, labelled(), labelled("other")) == {"prod/a", "prod/b", "prod/c"}


def test_changes_of_a_pod_that_nobody_reads_wake_nobody(cache: ObjectCache):
    assert woken(cache, PODS, labelled(), labelled(spec={"nodeName": "n"})) == set()


def test_a_model_wakes_itself_and_its_rivals(cache: ObjectCache):
    assert woken(cache, DYNAMO_MODELS, None, model("a")) == {"prod/a", "prod/b"}
    assert woken(cache, DYNAMO_MODELS, model("a"), None) == {"prod/a", "prod/b"}


def test_its_own_status_wakes_nobody(cache: ObjectCache):
    written = {**model("a", resourceVersion="2"), "status": {"readyEndpoints": 1}}
    assert woken(cache, DYNAMO_MODELS, model("a"), written) == set()
    assert woken(cache, DYNAMO_MODELS, model("a"), model("a", deletionTimestamp="now")) == {"prod/a", "prod/b"}


def test_other_resources_wake_nobody(cache: ObjectCache):
    assert woken(cache, SERVICES, None, labelled()) == set()


def test_what_is_kept_of_a_pod_says_the_same_of_workers():
    status = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "main", "restartCount": 2}],
        "qosClass": "Guaranteed",
    }
    spec = {"containers": [{"name": "main", "env": [{"name": "A", "value": "b"}]}], "volumes": []}
    pod = labelled(status=status, spec=spec)
    assert matters(kept(pod)) == matters(pod)
    assert find_workers([kept(pod)], [], port=9090) == find_workers([pod], [], port=9090)
    assert kept(kept(pod)) == kept(pod)
    assert "env" not in str(kept(pod))
