"""The cost of validation: an object may have 3 MiB, and each rule may read each part only a few times."""

import time
from typing import Any

import pytest
from dynamo_shared.api.validation import Facts, validate

MANY = 5_000
_LETTERS = "".join(map(chr, range(0x4E00, 0x4E00 + 120)))


def _names(prefix: str) -> list[str]:
    return [f"{prefix}{number}" for number in range(MANY)]


def _graph(*components: dict[str, Any], **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": {"name": "chat"}}
    return {**head, "spec": {"components": list(components), **spec}}


def _service(**service: Any) -> dict[str, Any]:
    head = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "metadata": {"name": "chat"}}
    return {**head, "spec": {"services": {"Worker": {"componentType": "worker", **service}}}}


def _worker(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    volumes = more.pop("volumes", [])
    template = {"spec": {"containers": [{"name": "main", "image": "a:1"}, *containers], "volumes": volumes}}
    return {"name": "Worker", "type": "worker", "podTemplate": template, **more}


def _ordered(names: list[str], order: list[str]) -> dict[str, Any]:
    return _graph(*({"name": name} for name in names), restart={"id": "1", "strategy": {"order": order}})


def _mounts(field: str) -> list[dict[str, Any]]:
    return [{"name": name, field: f"/{name}"} for name in _names("mount")]


def _pod(main: dict[str, Any], **pod: Any) -> dict[str, Any]:
    return _graph(
        {"name": "a", "podTemplate": {"spec": {"containers": [{"name": "main", "image": "a:1", **main}], **pod}}}
    )


def _long(step: int) -> str:
    return "".join(_LETTERS[number * step % len(_LETTERS)] for number in range(20_000))


COSTLY = {
    "an order of other names": _ordered(_names("here"), _names("there")),
    "an order of its names": _ordered(_names("here"), _names("here")),
    "long names that are alike": _ordered([_long(7)], [_long(11)]),
    "mounts of volumes that are not there": _graph(
        _worker(
            {"name": "other", "image": "a:1", "volumeMounts": _mounts("mountPath")},
            volumes=[{"name": name} for name in _names("volume")],
        )
    ),
    "claims that are not there": _service(
        extraPodSpec={
            "mainContainer": {"resources": {"claims": [{"name": name} for name in _names("one")]}},
            "resourceClaims": [{"name": name} for name in _names("other")],
        }
    ),
    "roles and containers": _graph(
        _worker(
            *({"name": name, "image": "a:1"} for name in _names("container")),
            multinode={"nodeCount": 2},
            roles=[{"name": name} for name in _names("role")],
        )
    ),
    "roles and mounts": _service(
        multinode={"nodeCount": 2}, roles=[{"name": name} for name in _names("role")], volumeMounts=_mounts("mountPoint")
    ),
    "a pod of many parts": _pod(
        {
            "ports": [{"containerPort": number, "hostPort": number} for number in range(1, MANY)],
            "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in _names("volume")],
            "volumeDevices": [{"name": name, "devicePath": f"/{name}"} for name in _names("device")],
        },
        hostNetwork=True,
        dnsConfig={"nameservers": ["::1"] * MANY, "searches": _names("a")},
        securityContext={"sysctls": [{"name": name, "value": "1"} for name in _names("a")]},
        volumes=[
            *({"name": name, "emptyDir": {}} for name in _names("device")),
            {
                "name": "all",
                "projected": {"sources": [{"secret": {"items": [{"key": "k", "path": name}]}} for name in _names("a")]},
            },
        ],
    ),
    "texts of a megabyte": _pod(
        {
            "env": [
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "['" * 500_000}}},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels" + "['" * 500_000 + "']"}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-" * 60_000}}},
            ]
        },
        dnsConfig={"nameservers": ["0" * 1_000_000, ".".join(["0" * 250_000] * 4) + "x", ":" * 1_000_000, "1:" * 500_000]},
        tolerations=[{"key": "a" * 1_000_000, "value": "a" * 1_000_000}],
    ),
    "mounts in two places": _service(
        volumeMounts=_mounts("mountPoint"), extraPodSpec={"mainContainer": {"volumeMounts": _mounts("mountPath")}}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTLY)
def test_large_objects_are_checked_quickly(name: str) -> None:
    obj = COSTLY[name]
    began = time.process_time()
    validate(obj, None, Facts())
    validate(obj, obj, Facts())
    assert time.process_time() - began < 5
