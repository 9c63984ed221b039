"""The models that a change of an object reconciles."""

from typing import Any

import pytest
from dynamo_model_discovery.models.workers import find_workers, matters
from dynamo_model_discovery.routing import index, on_departure, routes, trimmed
from dynamo_shared.api.base_models import base_model_hash
from dynamo_shared.api.registry.annotations import LOADED_ADAPTER
from dynamo_shared.api.resources import DYNAMO_MODELS, ENDPOINT_SLICES, PODS, SERVICES, ObjectKey, Resource
from dynamo_shared.state import ObjectCache

from tests.building.objects import stored_object
from tests.unit.routed import tasks_of

LABEL = "nvidia.com/dynamo-base-model-hash"


def model(name: str, base: str = "base", namespace: str = "prod", **metadata: Any) -> dict[str, Any]:
    metadata = {"uid": f"{namespace}-{name}", **metadata}
    return stored_object(DYNAMO_MODELS, name, namespace, spec={"modelName": name, "baseModelName": base}, **metadata)


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
    return {f"{task.key.namespace}/{task.key.name}" for task in tasks_of(routes(cache), resource, key, old, new)}


@pytest.mark.parametrize("resource", [PODS, ENDPOINT_SLICES])
def test_models_of_a_base_in_the_namespace(cache: ObjectCache, resource: Resource):
    assert woken(cache, resource, None, labelled()) == {"prod/a", "prod/b"}
    assert woken(cache, resource, labelled(), None) == {"prod/a", "prod/b"}
    assert woken(cache, resource, None, labelled(namespace="dev")) == {"dev/d"}
    assert woken(cache, resource, None, labelled("no one's")) == set()


def test_a_changed_spec_reconciles_its_model_whatever_its_generation(cache: ObjectCache):
    """A cluster that was restored from a backup counts generations from the start."""
    old, new = model("a"), model("a", resourceVersion="9")
    new["spec"] = {"modelName": "a", "baseModelName": "base", "modelType": "lora"}
    assert "prod/a" in woken(cache, DYNAMO_MODELS, old, new)
    assert (
        woken(cache, DYNAMO_MODELS, old, {**model("a", resourceVersion="9"), "status": {"readyEndpoints": 1}}) == set()
    )


def test_a_pod_that_moves_to_another_base_reconciles_the_models_of_both(cache: ObjectCache):
    assert woken(cache, PODS, labelled(), labelled("other")) == {"prod/a", "prod/b", "prod/c"}


def test_changes_of_unread_fields_of_a_pod_reconcile_nothing(cache: ObjectCache):
    assert woken(cache, PODS, labelled(), labelled(spec={"nodeName": "n"})) == set()


def lora(name: str, adapter: str, created: str = "2026-01-01T00:00:00Z", **metadata: Any) -> dict[str, Any]:
    made = model(name, creationTimestamp=created, **metadata)
    return {**made, "spec": {**made["spec"], "modelName": adapter, "modelType": "lora"}}


@pytest.fixture
def adapters(cache: ObjectCache) -> ObjectCache:
    """Three models that request one name, and one that requests another."""
    for number, name in enumerate(("first", "second", "third")):
        cache.put(DYNAMO_MODELS, lora(name, "sql", f"2026-01-0{number + 1}T00:00:00Z"))
    cache.put(DYNAMO_MODELS, lora("apart", "chat"))
    return cache


def test_a_changed_model_reconciles_itself_and_the_first_of_its_rivals(adapters: ObjectCache):
    late = lora("late", "sql", "2026-02-01T00:00:00Z")
    assert woken(adapters, DYNAMO_MODELS, None, late) == {"prod/late", "prod/first"}
    gone = lora("first", "sql")
    assert woken(adapters, DYNAMO_MODELS, gone, None) == {"prod/first", "prod/second"}
    renamed = lora("first", "chat", generation=2)
    assert woken(adapters, DYNAMO_MODELS, gone, renamed) == {"prod/first", "prod/second", "prod/apart"}


def test_the_model_that_has_loaded_the_name_comes_first(adapters: ObjectCache):
    holding = {LOADED_ADAPTER: '{"name": "sql", "source": "s3://b/m"}'}
    adapters.put(DYNAMO_MODELS, lora("third", "sql", "2026-01-03T00:00:00Z", resourceVersion="2", annotations=holding))
    assert woken(adapters, DYNAMO_MODELS, None, lora("late", "sql")) == {"prod/late", "prod/third"}


def test_models_with_different_names_do_not_reconcile_each_other(cache: ObjectCache):
    assert woken(cache, DYNAMO_MODELS, None, model("a")) == {"prod/a"}
    assert woken(cache, DYNAMO_MODELS, None, lora("z", "alone")) == {"prod/z"}


def test_a_status_change_reconciles_nothing(cache: ObjectCache):
    written = {**model("a", resourceVersion="2"), "status": {"readyEndpoints": 1}}
    assert woken(cache, DYNAMO_MODELS, model("a"), written) == set()
    assert woken(cache, DYNAMO_MODELS, model("a"), model("a", deletionTimestamp="now")) == {"prod/a"}


def test_other_resources_reconcile_nothing(cache: ObjectCache):
    assert woken(cache, SERVICES, None, labelled()) == set()


def test_a_trimmed_pod_gives_the_same_workers():
    status = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "main", "restartCount": 2}],
        "initContainerStatuses": [{"name": "runtime", "restartCount": 3}],
        "qosClass": "Guaranteed",
    }
    spec = {"containers": [{"name": "main", "env": [{"name": "A", "value": "b"}]}], "volumes": []}
    pod = labelled(status=status, spec=spec)
    assert matters(trimmed(pod)) == matters(pod)
    assert find_workers([trimmed(pod)], [], port=9090) == find_workers([pod], [], port=9090)
    assert trimmed(trimmed(pod)) == trimmed(pod)
    assert "env" not in str(trimmed(pod))


def test_models_are_kept_without_what_tenants_write_for_others():
    cache = ObjectCache()
    index(cache)
    annotations = {LOADED_ADAPTER: "{}", "mine": "x"}
    stored = model("one", labels={"a": "b"}, annotations=annotations, finalizers=["f"])
    cache.put(DYNAMO_MODELS, stored)
    kept = cache.get(DYNAMO_MODELS, ObjectKey("prod", "one"))
    assert kept is not None
    assert kept["spec"] == stored["spec"]
    assert kept["metadata"]["annotations"] == {LOADED_ADAPTER: "{}"}
    assert kept["metadata"]["finalizers"] == ["f"]
    assert "labels" not in kept["metadata"]


RUNNING = {"phase": "Running", "podIP": "10.0.0.1"}


@pytest.mark.parametrize(
    ("now", "gone"),
    [
        pytest.param(labelled(status={**RUNNING, "conditions": []}), [], id="it is there"),
        pytest.param(labelled(status={**RUNNING, "phase": "Failed"}), ["u"], id="it was evicted, and its object stays"),
        pytest.param(labelled(status={**RUNNING, "podIP": "10.0.0.2"}), ["u"], id="its node was started again"),
        pytest.param(None, ["u"], id="it is gone"),
    ],
)
def test_a_pod_departs_when_it_ends_or_leaves_its_address(cache: ObjectCache, now: Any, gone: list[str]):
    """Another pod may get the address, and must not receive the pending unloads of the first one."""
    departed: list[str] = []
    on_departure(cache, departed.append)
    cache.put(PODS, labelled(status=RUNNING))
    if now is None:
        cache.remove(PODS, ObjectKey("prod", "x"), "u")
    else:
        now["metadata"]["resourceVersion"] = "2"
        cache.put(PODS, now)
    assert departed == gone
