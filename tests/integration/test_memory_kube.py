"""The API server in memory answers like the real one, verb by verb."""

from collections.abc import Awaitable, Callable
from typing import Any

from dynamo_shared.api.objects import KubeObject, of_uid
from dynamo_shared.api.resources import CONFIG_MAPS, DYNAMO_MODELS, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError

from tests.building.memory_kube import MemoryKube

#: Not comparable: versions and uids, and generations, which the memory counts for all kinds.
OWN = ("uid", "managedFields", "creationTimestamp", "deletionGracePeriodSeconds")


def steps(namespace: str) -> list[Callable[[Any], Awaitable[Any]]]:
    """The requests, in order."""
    maps, models = ((each, ObjectKey(namespace, "it")) for each in (CONFIG_MAPS, DYNAMO_MODELS))
    away = ObjectKey(namespace, "away")

    def config_map(name: str = "it", **data: str) -> KubeObject:
        return {**CONFIG_MAPS.type_meta, "metadata": {"name": name, "namespace": namespace}, "data": data}

    def model(name: str = "it", version: str = "", **parts: Any) -> KubeObject:
        stale = {"resourceVersion": version} if version else {}
        return {**DYNAMO_MODELS.type_meta, "metadata": {"name": name, "namespace": namespace, **stale}, **parts}

    spec = {"modelName": "a", "baseModelName": "b", "modelType": "base"}
    counts = {"readyEndpoints": 1, "totalEndpoints": 2, "endpoints": []}
    labelled = {"metadata": {"labels": {"of": "this"}}, "data": {"a": None}}
    labelled_by_steps = [
        {"op": "add", "path": "/metadata/labels", "value": {"example.com/a": "1"}},
        {"op": "replace", "path": "/metadata/labels/example.com~1a", "value": "2"},
    ]
    tested = {"op": "test", "path": "/data/c", "value": "3"}

    async def name_alone(kube: Any) -> tuple[bool, str]:
        metadata = await kube.get_metadata(*maps)
        return "data" in metadata, metadata["name"]

    return [
        lambda kube: kube.get(*maps),
        name_alone,
        lambda kube: kube.create(CONFIG_MAPS, config_map(a="1")),
        name_alone,
        lambda kube: kube.create(CONFIG_MAPS, config_map(a="1")),
        lambda kube: kube.apply(CONFIG_MAPS, config_map(b="2")),
        lambda kube: kube.apply(CONFIG_MAPS, config_map(c="3")),
        lambda kube: kube.apply(CONFIG_MAPS, config_map(c="3")),
        lambda kube: kube.apply(CONFIG_MAPS, of_uid(config_map(c="4"), "another")),
        lambda kube: kube.apply(CONFIG_MAPS, of_uid(config_map("away"), "another")),
        lambda kube: kube.apply(CONFIG_MAPS, config_map("applied", a="1")),
        lambda kube: kube.apply(CONFIG_MAPS, config_map("applied", b="1")),
        lambda kube: kube.merge_patch(*maps, labelled),
        lambda kube: kube.merge_patch(*maps, {"metadata": {"resourceVersion": "1", "labels": {"x": "y"}}}),
        lambda kube: kube.merge_patch(CONFIG_MAPS, away, labelled),
        lambda kube: kube.list(CONFIG_MAPS, namespace, label_selector="of=this"),
        lambda kube: kube.list(CONFIG_MAPS, namespace, label_selector="of=that"),
        lambda kube: kube.merge_patch(*maps, {"metadata": {"labels": {"of": None}}}),
        lambda kube: kube.create(CONFIG_MAPS, config_map("away", a="1"), dry_run=True),
        lambda kube: kube.create(CONFIG_MAPS, config_map(a="1"), dry_run=True),
        lambda kube: kube.get(CONFIG_MAPS, away),
        lambda kube: kube.json_patch(*maps, labelled_by_steps),
        lambda kube: kube.json_patch(*maps, [{"op": "test", "path": "/data/c", "value": "9"}]),
        lambda kube: kube.json_patch(*maps, [tested, {"op": "replace", "path": "/data/c", "value": "4"}]),
        lambda kube: kube.json_patch(*maps, [{"op": "remove", "path": "/metadata/labels/example.com~1a"}]),
        lambda kube: kube.json_patch(CONFIG_MAPS, away, [tested]),
        lambda kube: kube.delete(*maps, uid="another"),
        lambda kube: kube.delete(*maps),
        lambda kube: kube.delete(*maps),
        lambda kube: kube.get(*maps),
        lambda kube: kube.create(DYNAMO_MODELS, model(spec=spec, status=counts)),
        lambda kube: kube.apply_status(DYNAMO_MODELS, model(status=counts)),
        lambda kube: kube.apply_status(DYNAMO_MODELS, model(status=counts)),
        lambda kube: kube.apply_status(DYNAMO_MODELS, model(status={**counts, "readyEndpoints": 2})),
        lambda kube: kube.apply_status(DYNAMO_MODELS, model(version="1", status=counts)),
        lambda kube: kube.apply_status(DYNAMO_MODELS, model("away", status=counts)),
        lambda kube: kube.merge_patch(*models, {"spec": {"modelName": "c"}, "status": {"readyEndpoints": 7}}),
        lambda kube: kube.merge_patch(*models, {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}),
        lambda kube: kube.delete(*models),
        lambda kube: kube.get(*models),
        lambda kube: kube.merge_patch(*models, {"metadata": {"finalizers": ["example.com/b"]}}),
        lambda kube: kube.merge_patch(*models, {"metadata": {"finalizers": []}}),
        lambda kube: kube.get(*models),
    ]


async def answers(kube: Any, namespace: str) -> list[Any]:
    """The result of each step: the object, and whether its version changed; or the class of the error."""
    results: list[Any] = []
    versions: dict[str, str] = {}

    def comparable(obj: KubeObject) -> KubeObject:
        metadata = {name: value for name, value in obj["metadata"].items() if name not in OWN}
        place = f"{obj['kind']} {metadata['name']}"
        before, versions[place] = versions.get(place), metadata.pop("resourceVersion", None)
        if obj["kind"] == CONFIG_MAPS.kind:
            metadata.pop("generation", None)
        if "deletionTimestamp" in metadata:
            metadata["deletionTimestamp"] = ""
        return {**obj, "metadata": metadata, "is new": versions[place] != before}

    for step in steps(namespace):
        try:
            answer = await step(kube)
        except KubeError as error:
            answer = type(error).__name__
        if isinstance(answer, list):
            answer = [comparable(each) for each in answer]
        results.append(comparable(answer) if isinstance(answer, dict) else answer)
    return results


async def test_the_memory_answers_like_the_real_api_server(kube: KubeClient, namespace: str):
    real, memory = await answers(kube, namespace), await answers(MemoryKube(), namespace)
    for number, (theirs, its) in enumerate(zip(real, memory, strict=True)):
        assert its == theirs, number
