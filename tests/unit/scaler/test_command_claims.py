"""Budgets of commands if pods get their GPUs by ResourceClaims."""

from collections.abc import Callable
from typing import Any

from dynamo_scaler.budgets.pools import DesiredPool
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, ObjectKey, Resource
from dynamo_shared.bus.commands import Answered
from dynamo_shared.runtime.settings.scaler import Budget, Scaler

from .harness import FREE, SIX, TWELVE, ScalerHarness, refused


def claim(harness: ScalerHarness, name: str, **how: str) -> None:
    """Let the components of a graph get their GPUs by a claim."""

    def change(graph: Any) -> None:
        for component in graph["spec"]["components"]:
            component["podTemplate"]["spec"]["resourceClaims"] = [{"name": "g", **how}]

    harness.graph(name, adapters=False, gpus=0, Prefill=1, Decode=1)
    harness.change(name, change)


def devices(**exactly: Any) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", **exactly}}]}}


def put(harness: ScalerHarness, resource: Resource, name: str, version: int = 1, **content: Any) -> None:
    metadata = {"name": name, "namespace": "team", "uid": f"{resource.plural} {name}", "resourceVersion": str(version)}
    harness.cache.put(resource, {"metadata": metadata, **content})


def put_template(harness: ScalerHarness, version: int = 1, **exactly: Any) -> None:
    put(harness, RESOURCE_CLAIM_TEMPLATES, "gpus", version, spec={"spec": devices(**exactly)})


def allocated(harness: ScalerHarness, name: str, count: int, version: int = 2) -> None:
    """The scheduler allocates all devices of a node to a claim."""
    results = [{"request": "r", "driver": "d", "pool": "p", "device": f"gpu-{index}"} for index in range(count)]
    status = {"allocation": {"devices": {"results": results}}}
    put(harness, RESOURCE_CLAIMS, name, version, spec=devices(allocationMode="All"), status=status)


def put_pod(harness: ScalerHarness, component: str, made: str, template: str = "gpus") -> None:
    """A pod of graph a, with the name of the claim that was created for it from a template."""
    pod_labels = {labels.GRAPH_DEPLOYMENT_NAME: "a", labels.COMPONENT: component}
    metadata = {"name": f"a-{component}", "namespace": "team", "uid": component, "resourceVersion": "1"}
    status = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": made}]}
    spec = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": template}]}
    harness.cache.put(PODS, {"metadata": {**metadata, "labels": pod_labels}, "spec": spec, "status": status})


def pools(harness: ScalerHarness, name: str = "a") -> list[DesiredPool]:
    return harness.view.pools(harness.view.graph(ObjectKey("team", name)) or {})


async def test_gpus_of_claims_count_in_budgets_as_their_template_says() -> None:
    harness = ScalerHarness(SIX)
    claim(harness, "a", resourceClaimTemplateName="gpus")
    assert [pool.unknown for pool in pools(harness)] == [("ResourceClaimTemplate gpus does not exist",)] * 2
    for version, count in ((1, 3), (2, 2)):
        put_template(harness, version, count=count)
        assert [(pool.gpus, pool.unknown) for pool in pools(harness)] == [(count, ())] * 2
    reason, _ = await refused(harness, harness.ask("a", Decode=3))
    assert reason == "BudgetCeiling"
    assert (await harness.scaling.carry_out(harness.ask("a", "c2", Decode=2))).reason == "Applied"


async def test_the_gpus_of_a_shared_claim_count_once_for_all_its_users() -> None:
    harness = ScalerHarness(SIX)
    put(harness, RESOURCE_CLAIMS, "four", spec=devices(count=4))
    for name in "ab":
        claim(harness, name, resourceClaimName="four")
    answer = await harness.scaling.carry_out(harness.ask("a", Decode=9))
    assert answer.message == "Decode 1 -> 9"
    ((_, _, decision),) = harness.reported.events
    assert [(each.gpus_per_replica, each.shared_gpus) for each in decision.components] == [(0, 4)]
    assert [(each.before, each.after) for each in decision.budgets] == [(4, 4)]
    # A claim that no other pool shares is released with the last replica, and counts from the first one.
    put(harness, RESOURCE_CLAIMS, "five", spec=devices(count=5))
    claim(harness, "c", resourceClaimName="five")
    assert (await harness.scaling.carry_out(harness.ask("c", "c2", Prefill=0))).reason == "Applied"
    assert "4 GPUs, below its floor" in (await refused(harness, harness.ask("c", "c3", Decode=0)))[1]


async def test_replicas_are_held_until_their_gpus_are_known() -> None:
    """ "All devices of a node" is known only when the first pods are on a node."""
    harness = ScalerHarness(Scaler(limits=FREE, budgets=(Budget(name="twelve", max_gpus=12),)))
    claim(harness, "a", resourceClaimTemplateName="gpus")
    put_template(harness, allocationMode="All")
    why = "ResourceClaimTemplate gpus requests all devices of a node, and is not allocated yet"
    answer = await harness.scaling.carry_out(harness.ask("a", Decode=2))
    assert answer.reason == "Held"
    assert f"budget twelve: the GPUs of team/a Prefill and 1 more are not known: {why}" in answer.message
    assert harness.reported.of("a") == [("scale-held", "GpusUnknown")]
    assert harness.reported.events[0][2].budgets[0].unknown == ["team/a Prefill", "team/a Decode"]

    allocated(harness, "one", 4)
    for component in ("Prefill", "Decode"):
        put_pod(harness, component, component)
    assert [pool.gpus for pool in pools(harness)] == [0, 0]
    for component in ("Prefill", "Decode"):
        allocated(harness, component, 4)
    await harness.resuming.check()
    assert harness.replicas("a") == {"Prefill": 1, "Decode": 2}
    assert [pool.gpus for pool in pools(harness)] == [4, 4]
    assert (await refused(harness, harness.ask("a", "c2", Decode=3)))[0] == "BudgetCeiling"


async def test_unknown_gpus_do_not_hold_a_command_that_takes_no_more() -> None:
    harness = ScalerHarness(TWELVE)
    claim(harness, "a", resourceClaimTemplateName="gpus")
    put_template(harness, allocationMode="All")
    harness.graph("b", Prefill=6, Decode=7)
    # For the floor only the known GPUs count, thirteen.
    assert (await harness.scaling.carry_out(harness.ask("b", Decode=6))).reason == "Applied"
    reason, message = await refused(harness, harness.ask("b", "c2", Decode=5))
    assert (reason, "11 GPUs known, below its floor of 12" in message) == ("BudgetFloor", True)
    assert (await refused(harness, harness.ask("b", "c3", Decode=7)))[0] == "BudgetCeiling"
    # The known GPUs alone keep the floor.
    assert (await harness.scaling.carry_out(harness.ask("a", "c4", Decode=0))).reason == "Applied"


async def test_an_advisory_budget_reports_unknown_gpus() -> None:
    harness = ScalerHarness(Scaler(limits=FREE, budgets=(Budget(name="six", max_gpus=6, advisory=True),)))
    claim(harness, "a", resourceClaimName="none")
    answer = await harness.scaling.carry_out(harness.ask("a", Decode=2))
    why = "the GPUs of team/a Prefill and 1 more are not known: ResourceClaim none does not exist"
    assert answer == Answered("Applied", f"Decode 1 -> 2; budget six (advisory): {why}")


async def test_pods_of_another_component_say_nothing_about_a_claim_of_the_same_name() -> None:
    harness = ScalerHarness(SIX)
    claim(harness, "a", resourceClaimTemplateName="gpus")
    put_template(harness, allocationMode="All")
    put_pod(harness, "Decode", "made", template="others")
    allocated(harness, "made", 8)
    assert [bool(pool.unknown) for pool in pools(harness)] == [True, True]


def test_a_changed_claim_recomputes_only_the_pools_that_use_it() -> None:
    """Each pod with a template gets its own claim, and a budget may count a thousand graphs of a namespace."""
    harness = ScalerHarness(SIX)
    claim(harness, "a", resourceClaimTemplateName="gpus")
    put_template(harness, allocationMode="All")
    put_pod(harness, "Decode", "made")
    claim(harness, "b", resourceClaimName="four")
    harness.graph("c", Decode=1)

    def changed(change: Callable[[], None]) -> list[str]:
        known = {name: pools(harness, name) for name in "abc"}
        change()
        return [name for name in "abc" if pools(harness, name) is not known[name]]

    assert changed(lambda: allocated(harness, "of another", 4)) == []
    assert changed(lambda: allocated(harness, "made", 4)) == ["a"]
    assert changed(lambda: allocated(harness, "four", 4)) == ["b"]
    assert changed(lambda: put_template(harness, 2, count=3)) == ["a"]
