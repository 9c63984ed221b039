"""Pods that have registered with Dynamo: the requests to the API server, and the cached answers."""

from typing import Any

import pytest
from dynamo_pod_builder.registrations import SAMPLE, Registrations
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube.errors import Forbidden, KubeError, NotFound, NotServed

REGISTERED = "2026-01-02T03:04:05Z"


class Kube:
    """The existing records by name, and the requested names."""

    def __init__(self, *records: KubeObject) -> None:
        self.records = {each["metadata"]["name"]: each for each in records}
        self.asked: list[str] = []

    async def get_metadata(self, _resource: Resource, key: ObjectKey) -> KubeObject:
        self.asked.append(key.name)
        if key.name not in self.records:
            raise NotFound(404, "NotFound", "no")
        metadata: KubeObject = self.records[key.name]["metadata"]
        return metadata


def record(pod: str, uid: str = "") -> KubeObject:
    owner = {"kind": "Pod", "name": pod, "uid": uid or f"uid-{pod}"}
    return {"metadata": {"name": pod, "creationTimestamp": REGISTERED, "ownerReferences": [owner]}}


def pod(
    name: str, *, ready: bool = True, enabled: str = "true", role: str = "leader", container: str = "main"
) -> KubeObject:
    of_pod = {labels.DISCOVERY_ENABLED: enabled, labels.ROLE: role}
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "labels": of_pod}
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": metadata, "spec": {"containers": [{"name": container}]}, "status": status}


async def known(kube: Any, *workloads: list[KubeObject]) -> tuple[set[str], Registrations]:
    registrations = Registrations(kube)
    return set(await registrations.of(workloads)), registrations


async def test_pods_that_own_a_record_of_their_name_have_registered():
    kube = Kube(record("a"), record("b", "of a pod of the same name before"))
    since, _ = await known(kube, [pod("a"), pod("b"), pod("c")])
    assert since == {"uid-a"}


async def test_only_ready_leaders_that_use_kubernetes_discovery_are_requested():
    kube = Kube(record("a"))
    pods = [pod("a"), pod("b", ready=False), pod("c", enabled="false"), pod("d", role="worker")]
    pods.append(pod("e", container="engine-0"))
    await known(kube, pods)
    assert kube.asked == ["a"]


@pytest.mark.parametrize("refusal", [NotFound, Forbidden, NotServed])
async def test_an_update_continues_if_registrations_cannot_be_read(refusal: type[KubeError]):
    class Refusing(Kube):
        async def get_metadata(self, _resource: Resource, _key: ObjectKey) -> KubeObject:
            raise refusal(404, "", "no")

    since, _ = await known(Refusing(), [pod("a")])
    assert not since


async def test_registered_pods_are_not_requested_again():
    kube = Kube(record("a"))
    _, registrations = await known(kube, [pod("a"), pod("b")])
    kube.records["b"] = record("b")
    assert set(await registrations.of([[pod("a"), pod("b")]])) == {"uid-a", "uid-b"}
    assert kube.asked == ["a", "b", "b"]


async def test_few_pods_are_requested_while_none_registers():
    many = [pod(f"p{number}") for number in range(SAMPLE + 20)]
    kube = Kube()
    await known(kube, many)
    assert len(kube.asked) == SAMPLE
    kube = Kube(record("p0"))
    since, _ = await known(kube, many, [pod("other")])
    assert since == {"uid-p0"}
    assert len(kube.asked) == len(many) + 1
