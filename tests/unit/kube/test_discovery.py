"""Waiting for types: the meaning of each answer of the server."""

from typing import Any

import pytest
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, PODS, Resource
from dynamo_shared.kube import Invalid, Unavailable, discovery

from tests.building.objects import object_of

from . import steps

FOO = Resource("example.com", "v1", "foos", "Foo")


def crd(**conditions: str) -> dict[str, Any]:
    names = {"plural": "foos", "kind": "Foo"}
    versions = [{"name": "v1", "served": True}, {"name": "v0", "served": False}]
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions}
    reported = [{"type": name, "status": status, "reason": "r", "message": "m"} for name, status in conditions.items()]
    return object_of(CUSTOM_RESOURCE_DEFINITIONS, "foos.example.com", "", spec=spec, status={"conditions": reported})


async def test_served(server: Any) -> None:
    client = server.client()
    server.then(
        steps.answer({"resources": [{"name": "pods/status"}, {"name": "pods"}]}),
        steps.answer({"resources": [{"name": "statefulsets"}]}),
        steps.text("404 page not found\n", 404),
    )
    assert await discovery.served(client, PODS)
    assert not await discovery.served(client, DEPLOYMENTS)
    assert not await discovery.served(client, FOO)
    assert [observed.path for observed in server.requests] == ["/api/v1", "/apis/apps/v1", "/apis/example.com/v1"]


async def test_install_waits_until_it_is_served(server: Any) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    server.then(
        steps.answer(crd()),
        steps.refuse(404, "NotFound"),
        steps.answer(crd()),
        steps.answer(crd(Established="True")),
        steps.text("404 page not found\n", 404),
        steps.answer(crd(Established="True")),
        steps.answer({"resources": [{"name": "foos"}]}),
    )
    await discovery.install_crds(server.client(), [crd()], sleep=sleep)
    assert len(waits) == 3


@pytest.mark.parametrize("conversion", [None, {"strategy": "Webhook"}])
async def test_an_install_continues_after_a_server_error(server: Any, conversion: dict[str, Any] | None) -> None:
    desired = crd(Established="True")
    if conversion is not None:
        desired["spec"]["conversion"] = conversion
        server.then(steps.answer(desired))
    server.then(
        steps.refuse(409, "Conflict"),
        steps.answer(desired),
        steps.answer(desired),
        steps.answer({"resources": [{"name": "foos"}]}),
    )
    await discovery.install_crds(server.client(), [desired])
    assert not server.script


def converted(strategy: str, *managers: str, **webhook: Any) -> dict[str, Any]:
    """A CRD of two versions in the server, whose conversion is owned by `managers`."""
    owned: dict[str, Any] = {"f:spec": {"f:group": {}, "f:conversion": {"f:strategy": {}}}}
    result = crd(Established="True")
    result["spec"]["conversion"] = {"strategy": strategy, **webhook}
    result["metadata"] |= {
        "resourceVersion": "7",
        "managedFields": [{"manager": name, "operation": "Apply", "fieldsV1": owned} for name in managers],
    }
    return result


SERVED = {"resources": [{"name": "foos"}]}
DISOWNED: dict[str, Any] = {"f:spec": {"f:group": {}}}


@pytest.mark.parametrize("before", [None, converted("None")])
async def test_a_conversion_is_installed_once_and_released(server: Any, before: dict[str, Any] | None) -> None:
    own = converted("Webhook", "tester")
    server.then(
        steps.answer(before) if before else steps.refuse(404, "NotFound"),
        steps.answer(own),
        steps.refuse(409, "Conflict"),
        steps.answer(own),
        steps.answer(own),
        steps.answer(own),
        steps.answer(SERVED),
    )
    desired = converted("Webhook")
    await discovery.install_crds(server.client(), [desired])
    assert [observed.method for observed in server.requests] == ["GET", "PATCH", "PATCH", "GET", "PATCH", "GET", "GET"]
    apply, disown = server.requests[1], server.requests[4]
    assert apply.json["spec"]["conversion"]["strategy"] == "Webhook"
    assert disown.json["metadata"]["resourceVersion"] == "7"
    assert [entry["fieldsV1"] for entry in disown.json["metadata"]["managedFields"]] == [DISOWNED]


async def test_a_conversion_that_another_webhook_serves_is_left_alone(server: Any) -> None:
    theirs = converted("Webhook", "user")
    server.then(steps.answer(theirs), steps.answer(theirs), steps.answer(theirs), steps.answer(SERVED))
    await discovery.install_crds(server.client(), [converted("Webhook")])
    assert [observed.method for observed in server.requests] == ["GET", "PATCH", "GET", "GET"]
    assert "conversion" not in server.requests[1].json["spec"]


async def test_an_interrupted_installation_is_finished_before_the_conversion_is_removed(server: Any) -> None:
    both = converted("Webhook", "user", "tester")
    server.then(steps.answer(both), steps.answer(both), steps.answer(both), steps.answer(both), steps.answer(SERVED))
    await discovery.install_crds(server.client(), [converted("Webhook")])
    disown, apply = server.requests[1], server.requests[2]
    fields = {entry["manager"]: entry["fieldsV1"] for entry in disown.json["metadata"]["managedFields"]}
    assert fields["tester"] == DISOWNED
    assert "f:conversion" in fields["user"]["f:spec"]
    assert "conversion" not in apply.json["spec"]


async def test_a_taken_name_is_reported_at_once(server: Any) -> None:
    server.then(steps.answer(crd(NamesAccepted="False")))
    with pytest.raises(Invalid, match=r"foos\.example\.com: m"):
        await discovery.wait_established(server.client(), ["foos.example.com"])


async def test_waiting_times_out(server: Any) -> None:
    server.then(steps.answer(crd()))
    with pytest.raises(Unavailable, match=r"foos\.example\.com: is not established"):
        await discovery.wait_established(server.client(), ["foos.example.com"], timeout=0)


@pytest.mark.parametrize("answer", ["<html>log in</html>", "[]"])
async def test_an_answer_of_a_gateway_is_an_error_that_callers_retry(server: Any, answer: str) -> None:
    server.then(*[steps.text(answer)] * 2)
    with pytest.raises(Unavailable):
        await discovery.served(server.client(), PODS)
    with pytest.raises(Unavailable):
        await discovery.groups(server.client())


async def test_groups(server: Any) -> None:
    server.then(steps.answer({"groups": [{"name": "apps", "versions": [{"version": "v1"}]}]}))
    assert await discovery.groups(server.client()) == {"apps": ["v1"]}
