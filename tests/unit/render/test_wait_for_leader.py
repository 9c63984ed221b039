"""The script with which vLLM workers wait for their leader: which pod at an address counts as the leader."""

import socket
from typing import Any

import pytest
from dynamo_pod_builder.render.workloads.scripts import wait_for_leader
from dynamo_pod_builder.render.workloads.scripts.wait_for_leader import lacking, objection

ADDRESS = "10.0.0.7"


def pod(name: str, phase: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "status": {"phase": phase}}


@pytest.fixture
def has_address(monkeypatch):
    """Sets the pods that Kubernetes has at an address."""
    return lambda *pods: monkeypatch.setattr(wait_for_leader, "pods_at", lambda address: list(pods))


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([pod("leader", "Running")], ""),
        ([], "no pod has the address 10.0.0.7"),
        ([pod("leader", "Pending")], "pod leader is Pending"),
        ([pod("leader", "Running", deletionTimestamp="2026-11-28T10:00:00Z")], "pod leader is terminating"),
        # The pods of a completed Job keep their address, which other pods may get.
        ([pod("download-model", "Succeeded"), pod("leader", "Running")], ""),
        ([pod("leader", "Running"), pod("upgrade", "Failed")], ""),
        (
            [pod("download-model", "Succeeded"), pod("leader", "Running", deletionTimestamp="2026-11-28T10:00:00Z")],
            "pod download-model is Succeeded, pod leader is terminating",
        ),
    ],
)
def test_only_a_running_pod_that_is_not_being_deleted_is_the_leader(has_address, pods, expected):
    has_address(*pods)
    assert objection(ADDRESS) == expected


def test_an_open_port_suffices_if_kubernetes_does_not_answer(monkeypatch):
    def refused(address: str) -> None:
        raise PermissionError("403")

    monkeypatch.setattr(wait_for_leader, "pods_at", refused)
    assert objection(ADDRESS) == ""


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_leader_is_ready_when_its_port_is_open(has_address, family, address):
    has_address(pod("leader", "Running"))
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.bind((address, 0))
        port = listening.getsockname()[1]
        assert lacking(address, port).startswith(f"port {port}: ")
        listening.listen()
        assert lacking(address, port) == ""
    assert lacking("leader.invalid", port) == "its name does not resolve"


@pytest.mark.parametrize(("host", "written"), [("10.96.0.1", "10.96.0.1"), ("fd00:10:96::1", "[fd00:10:96::1]")])
def test_kubernetes_is_asked_at_an_address_of_either_family(
    monkeypatch: pytest.MonkeyPatch, host: str, written: str
) -> None:
    """Without brackets no IPv6 address was valid, and an open port of a leader that is being deleted was enough."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert wait_for_leader.api_server() == f"https://{written}:443"
