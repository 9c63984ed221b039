"""The pods that are workers and may be called."""

from typing import Any

import pytest
from dynamo_model_discovery.models.workers import Worker, base_model_of, find_workers, matters
from hypothesis import example, given
from hypothesis import strategies as st

HASH = "nvidia.com/dynamo-base-model-hash"


def pod(name: str = "a", ip: str | None = "10.0.0.1", *, ready: bool = True, **extra: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    container_statuses = [{"name": "main", "restartCount": 0}]
    status: dict[str, Any] = {"phase": "Running", "conditions": conditions, "containerStatuses": container_statuses}
    if ip is not None:
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    metadata = {"name": name, "namespace": "prod", "uid": f"uid-{name}", "labels": {HASH: "abcd1234"}}
    return {"metadata": {**metadata, **extra.pop("metadata", {})}, "status": {**status, **extra}}


def slice_of(*endpoints: dict[str, Any], service: str = "dynamo-model-abcd1234") -> dict[str, Any]:
    return {
        "metadata": {"name": "s", "namespace": "prod", "labels": {"kubernetes.io/service-name": service}},
        "endpoints": list(endpoints),
    }


def endpoint(name: str = "a", ip: str = "10.0.0.1", *, ready: bool | None = True, **target: Any) -> dict[str, Any]:
    conditions = {} if ready is None else {"ready": ready}
    reference = {"kind": "Pod", "name": name, "namespace": "prod", "uid": f"uid-{name}", **target}
    return {"addresses": [ip], "conditions": conditions, "targetRef": reference}


def test_a_ready_pod_in_a_slice_is_a_worker():
    result = find_workers([pod("b", "10.0.0.2"), pod()], [slice_of(endpoint(), endpoint("b", "10.0.0.2"))], port=9090)
    assert result.workers == (
        Worker("a", "uid-a", "http://10.0.0.1:9090", "main:0", True),
        Worker("b", "uid-b", "http://10.0.0.2:9090", "main:0", True),
    )
    assert result.services == ("dynamo-model-abcd1234",)
    assert result.ready == result.workers
    assert not result.absent


def test_ipv6_addresses_are_in_brackets():
    result = find_workers([pod(ip="fd00::7")], [slice_of(endpoint(ip="fd00::7"))], port=9090)
    assert result.workers[0].url == "http://[fd00::7]:9090"


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(endpoint(ready=False), id="not ready there"),
        pytest.param(endpoint(kind="Node"), id="not a pod"),
        pytest.param(endpoint(namespace="other"), id="of another namespace"),
        pytest.param(endpoint(uid="uid-of-its-predecessor"), id="another pod of its name"),
        pytest.param(endpoint(ip="10.0.0.99"), id="at another address"),
        pytest.param({"addresses": ["10.0.0.1"]}, id="of nothing"),
    ],
)
def test_a_slice_entry_of_another_pod_does_not_make_a_pod_ready(listed: dict[str, Any]):
    result = find_workers([pod()], [slice_of(listed)], port=9090)
    assert [worker.ready for worker in result.workers] == [False]
    assert result.absent == (("a", "no EndpointSlice lists it as ready"),)


def test_unknown_readiness_counts_as_ready():
    assert find_workers([pod()], [slice_of(endpoint(ready=None))], port=9090).ready


def test_a_pod_that_is_not_ready_counts_so_at_once_whatever_its_slice_says():
    result = find_workers([pod(ready=False)], [slice_of(endpoint())], port=9090)
    assert not result.ready
    assert result.absent == (("a", "it is not ready"),)


@pytest.mark.parametrize(
    "ending", [{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, {"phase": "Failed"}, {"phase": "Succeeded"}]
)
def test_a_pod_that_has_ended_is_not_a_worker(ending: dict[str, Any]):
    assert not find_workers([pod(**ending)], [slice_of(endpoint())], port=9090).workers


@pytest.mark.parametrize(
    ("object_labels", "follows"),
    [
        ({"role": "worker"}, True),
        ({"role": "leader"}, False),
        ({"grove.io/podclique": "g-0-decode-wkr"}, True),
        ({"grove.io/podclique": "g-0-decode-ldr"}, False),
        ({"grove.io/podclique": "g-0-decode-0-decode-gms-0"}, True),
        ({"grove.io/podclique": "g-0-decode-0-decode-wkr-1"}, True),
        ({"grove.io/podclique": "g-0-decode-0-decode"}, False),
        ({"grove.io/podclique": "g-0-my-wkr", "nvidia.com/dynamo-component": "my-wkr"}, False),
    ],
)
def test_only_the_leader_of_a_multi_node_engine_is_called(object_labels: dict[str, str], follows: bool):
    labels = {HASH: "abcd1234", "nvidia.com/dynamo-component": "Decode", **object_labels}
    result = find_workers([pod(metadata={"labels": labels})], [slice_of(endpoint())], port=9090)
    assert bool(result.workers) is not follows
    assert not result.absent


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.9.1", "::1", "169.254.169.254", "fe80::1", "fe80::1%eth0", "0.0.0.0", "::", "224.0.0.1"),
        *(
            "ff02::1",
            "255.255.255.255",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "240.0.0.1",
            "example.com",
            "10.0.0.1:80",
        ),
        *("10.0.0.1/x", "2002:a9fe:a9fe::1", "2001:0:a9fe:a9fe::1", "64:ff9b::a9fe:a9fe"),
        *("100.100.100.200", "168.63.129.16", "fd00:ec2::254", "::ffff:100.100.100.200"),
    ],
)
def test_addresses_outside_the_pod_network_are_not_called(address: str):
    result = find_workers([pod(ip=address)], [slice_of(endpoint(ip=address))], port=9090)
    assert not result.workers
    assert result.absent[0][0] == "a"


def test_the_first_address_of_the_pod_is_called_and_not_the_one_of_a_slice():
    dual = pod(podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00::1"}])
    result = find_workers([dual], [slice_of(endpoint(ip="fd00::1"))], port=9090)
    assert [(worker.url, worker.ready) for worker in result.workers] == [("http://10.0.0.1:9090", True)]


@pytest.mark.parametrize(
    "statuses",
    [
        {"containerStatuses": [{"name": "main", "restartCount": 1}]},
        {"initContainerStatuses": [{"name": "runtime", "restartCount": 1}]},
    ],
    ids=["the engine", "a sidecar with Dynamo's runtime"],
)
def test_a_restarted_container_is_another_incarnation(statuses: dict[str, Any]):
    again = pod(**statuses)
    one, two = (find_workers([each], [], port=9090).workers[0].incarnation for each in (pod(), again))
    assert one != two
    assert matters(pod()) != matters(again)


def test_only_fields_that_discovery_reads_matter():
    changed = pod(qosClass="Burstable")
    changed["metadata"]["annotations"] = {"a": "b"}
    assert matters(pod()) == matters(changed)
    assert matters(pod()) != matters(pod(ready=False))
    assert base_model_of(pod()) == ("prod/abcd1234",)
    assert base_model_of({"metadata": {"name": "x"}}) == ()


_ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", "127.0.0.1", "169.254.169.254", "10.9.9.9"])
_NAMES = st.sampled_from(["a", "b", "no one"])


@example(pods=[("a", "10.0.0.1", True)], listed=[("a", "10.0.0.1", None, "prod"), ("a", "10.9.9.9", True, "evil")])
@given(
    pods=st.lists(st.tuples(_NAMES, _ADDRESSES, st.booleans()), max_size=3, unique_by=lambda each: each[0]),
    listed=st.lists(
        st.tuples(_NAMES, _ADDRESSES, st.sampled_from([True, False, None]), st.sampled_from(["prod", "evil"])),
        max_size=6,
    ),
)
def test_only_addresses_of_pods_are_called_whatever_slices_say(pods: Any, listed: Any):
    known = {name: ip for name, ip, _ in pods}
    endpoints = [endpoint(name, ip, ready=ready, namespace=ns) for name, ip, ready, ns in listed]
    result = find_workers([pod(name, ip, ready=ready) for name, ip, ready in pods], [slice_of(*endpoints)], port=9090)
    for worker in result.workers:
        assert worker.url == f"http://{known[worker.pod]}:9090"
        assert not known[worker.pod].startswith(("127.", "169.254."))
    for worker in result.ready:
        assert (worker.pod, known[worker.pod]) in {
            (name, ip) for name, ip, ready, ns in listed if ready is not False and ns == "prod"
        }
