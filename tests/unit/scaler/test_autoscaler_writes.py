"""The writes, their order, and the reports when a component gets another autoscaler."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_scaler.autoscaling.autoscalers import AutoscalerState
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS
from dynamo_shared.kube.overruled import LEFT_ALONE

from tests.unit.scaler.autoscaler_api import HPA, KEY, TRIGGERS, AutoscalerDesk


@pytest.mark.parametrize("taken_by_another", [False, True])
async def test_a_deletion_by_another_writer_is_not_announced(taken_by_another: bool) -> None:
    harness = AutoscalerDesk()
    await harness.ask(HPA)

    def deleted_by_a_user() -> None:
        del harness.api.objects[HORIZONTAL_POD_AUTOSCALERS.id, KEY]
        if taken_by_another:
            harness.foreign(HORIZONTAL_POD_AUTOSCALERS)

    harness.api.before_delete = deleted_by_a_user
    state = await harness.ask(None)
    assert state.condition is None
    assert harness.announced.lines == [
        "Normal AutoscalerCreated Autoscale: Created HorizontalPodAutoscaler g-w between 1 and 3 replicas"
    ]
    # The platform deletes neither that autoscaler again nor the other object of that name.
    harness.api.calls.clear()
    await harness.ask(None)
    assert harness.api.calls == []


async def test_a_deletion_is_announced() -> None:
    harness = AutoscalerDesk()
    await harness.ask(HPA)
    await harness.ask(None)
    assert harness.api.kinds() == []
    assert harness.announced.lines[1:] == [
        "Normal AutoscalerDeleted Autoscale: Deleted HorizontalPodAutoscaler g-w between 1 and 3 replicas"
    ]


async def test_an_hpa_stays_if_the_name_of_the_scaled_object_is_taken() -> None:
    harness = AutoscalerDesk()
    await harness.ask(HPA)
    harness.foreign(SCALED_OBJECTS)
    harness.api.has_keda_webhook = False
    for known in (False, True):
        if known:
            harness.read()
        harness.api.calls.clear()
        condition = await harness.condition(TRIGGERS)
        assert (condition.status, condition.reason) == (False, "NameTaken")
        assert condition.message == (
            "a ScaledObject named 'g-w' exists already and belongs to another owner: delete or rename it, or remove the "
            "request for an autoscaler; until then HorizontalPodAutoscaler g-w between 1 and 3 replicas stays"
        )
        assert "delete HorizontalPodAutoscaler" not in harness.api.calls


async def test_a_scaled_object_stays_if_the_name_of_the_hpa_is_taken() -> None:
    harness = AutoscalerDesk()
    await harness.ask(TRIGGERS)
    harness.foreign(HORIZONTAL_POD_AUTOSCALERS)
    condition = await harness.condition(HPA)
    assert (condition.status, condition.reason) == (False, "NameTaken")
    assert condition.message.endswith("until then ScaledObject g-w between 1 and 3 replicas stays")
    assert "delete ScaledObject" not in harness.api.calls


@pytest.mark.parametrize(
    ("before", "after", "refused", "stays"),
    [
        (HPA, TRIGGERS, "ScaledObject", "HorizontalPodAutoscaler"),
        (TRIGGERS, HPA, "HorizontalPodAutoscaler", "ScaledObject"),
    ],
)
async def test_an_autoscaler_stays_if_a_policy_rejects_the_other_kind(before, after, refused, stays) -> None:
    harness = AutoscalerDesk()
    await harness.ask(before)
    harness.api.refused = {refused}
    state = await harness.ask(after)
    assert state.condition is not None
    assert (state.condition.status, state.condition.reason, state.again) == (False, "RefusedByApiServer", 30.0)
    assert "a policy says no" in state.condition.message
    assert state.condition.message.endswith(f"until then {stays} g-w between 1 and 3 replicas stays")
    assert harness.api.kinds() == [stays]
    assert len(harness.announced.lines) == 1
    # Without the policy, the other kind replaces it.
    harness.api.refused = set()
    assert ((await harness.condition(after)).status, harness.api.kinds()) == (True, [refused])


async def test_an_autoscaler_that_is_not_stored_as_written_is_not_written_at_each_reconcile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An API server without the feature drops `tolerance`; each status of the HPA led to a write and an Event."""
    harness = AutoscalerDesk()
    store = harness.api._store

    def without_tolerance(resource: Any, key: Any, obj: Any) -> Any:
        obj["spec"].get("behavior", {}).get("scaleUp", {}).pop("tolerance", None)
        return store(resource, key, obj)

    monkeypatch.setattr(harness.api, "_store", without_tolerance)
    rules = {**HPA, "behavior": {"scaleUp": {"tolerance": "0.05", "stabilizationWindowSeconds": 0}}}
    for _ in range(4):
        await harness.ask(rules)
    assert harness.api.calls == ["create HorizontalPodAutoscaler", "apply HorizontalPodAutoscaler"]
    await harness.ask({**rules, "maxReplicas": 4})
    harness.clock.now += LEFT_ALONE
    await harness.ask({**rules, "maxReplicas": 4})
    assert harness.api.calls[2:] == ["apply HorizontalPodAutoscaler"] * 2, "a change, and again after a while"


async def test_an_hpa_is_created_before_the_scaled_object_is_deleted() -> None:
    harness = AutoscalerDesk()
    await harness.ask(TRIGGERS)
    harness.api.calls.clear()
    await harness.ask(HPA)
    assert harness.api.calls == ["create HorizontalPodAutoscaler", "delete ScaledObject"]
    assert [line.split()[1] for line in harness.announced.lines] == [
        "AutoscalerCreated",
        "AutoscalerCreated",
        "AutoscalerDeleted",
    ]


async def test_a_scaled_object_is_dry_run_before_the_hpa_is_deleted() -> None:
    """KEDA's webhook rejects a ScaledObject next to an HPA of its target."""
    harness = AutoscalerDesk()
    await harness.ask(HPA)
    harness.api.calls.clear()
    await harness.ask(TRIGGERS)
    assert harness.api.calls == ["try ScaledObject", "delete HorizontalPodAutoscaler", "create ScaledObject"]
    # The dry run says that it takes over the HPA. The real object does not, because the HPA no longer exists.
    made = await harness.api.get(SCALED_OBJECTS, KEY)
    assert list(made["metadata"]["annotations"]) == ["nvidia.com/last-applied-hash"]
    assert "advanced" not in made["spec"]


async def test_an_hpa_stays_if_keda_rejects_the_scaled_object_because_of_a_users_hpa() -> None:
    harness = AutoscalerDesk()
    await harness.ask(HPA)
    harness.foreign(HORIZONTAL_POD_AUTOSCALERS, "mine")
    assert "already managed by the hpa 'mine'" in (await harness.condition(TRIGGERS)).message
    assert "delete HorizontalPodAutoscaler" not in harness.api.calls


async def test_a_create_that_is_rejected_after_the_deletion_is_retried_soon() -> None:
    """KEDA may observe the deletion after the API server has answered."""
    harness = AutoscalerDesk()
    await harness.ask(HPA)
    harness.api.refused, harness.api.strict = {"ScaledObject"}, False
    # It is not a problem yet.
    assert await harness.ask(TRIGGERS) == AutoscalerState(None, 1.0)
    # It is one when KEDA rejects it again although the HPA no longer exists.
    state = await harness.ask(TRIGGERS)
    assert state.condition is not None
    assert (state.condition.reason, state.again) == ("RefusedByApiServer", 30.0)


async def test_the_hpa_is_deleted_before_the_scaled_object_changes_if_both_exist() -> None:
    """A scaler that stopped in between leaves both. KEDA rejects changes of a ScaledObject next to an HPA, too."""
    harness = AutoscalerDesk()
    await harness.ask(TRIGGERS)
    scaled_object = await harness.api.get(SCALED_OBJECTS, KEY)
    await harness.ask(HPA)
    del scaled_object["metadata"]["uid"]
    harness.api.put(scaled_object)
    harness.read()
    harness.api.calls.clear()
    await harness.ask({**TRIGGERS, "maxReplicas": 5})
    assert harness.api.calls == ["delete HorizontalPodAutoscaler", "apply ScaledObject"]
    assert harness.api.kinds() == ["ScaledObject"]


async def test_an_object_that_is_being_deleted_counts_until_it_is_gone() -> None:
    """KEDA's finalizer keeps a ScaledObject for a while. Until it is gone, the name is taken."""
    harness = AutoscalerDesk()
    await harness.ask(TRIGGERS)
    (stored,) = harness.api.objects.values()
    stored["metadata"]["finalizers"] = ["finalizer.keda.sh"]
    await harness.ask(None)
    for known in (False, True):
        if known:
            harness.read()
        state = await harness.ask(TRIGGERS)
        assert state.condition is not None
        assert (state.condition.status, state.condition.reason, state.again) == (False, "BeingDeleted", 30.0)
    # An HPA is not deleted for a ScaledObject that is being deleted.
    await harness.ask(HPA)
    assert (await harness.condition(TRIGGERS)).reason == "BeingDeleted"
    assert harness.api.kinds() == ["HorizontalPodAutoscaler"]


@pytest.mark.parametrize(
    ("rules", "reason"), [({"maxReplicas": "many"}, "InvalidAutoscaling"), (TRIGGERS, "KedaNotInstalled")]
)
async def test_an_autoscaler_stays_if_the_next_one_cannot_be_created(rules: Any, reason: str) -> None:
    harness = AutoscalerDesk()
    await harness.ask(HPA)
    harness.autoscalers = replace(harness.autoscalers, is_served=lambda _: False)
    condition = await harness.condition(rules)
    assert (condition.status, condition.reason) == (False, reason)
    assert condition.message.endswith("; until then HorizontalPodAutoscaler g-w between 1 and 3 replicas stays")
    assert harness.api.calls == ["create HorizontalPodAutoscaler"]


def _authenticated(reference: Any) -> dict[str, Any]:
    metadata = {"serverAddress": "http://of-a-tenant.n", "query": "q", "threshold": "1"}
    return {
        "maxReplicas": 3,
        "triggers": [{"type": "prometheus", "metadata": metadata, "authenticationRef": reference}],
    }


async def test_secrets_of_the_cluster_are_not_sent_to_a_server_that_a_graph_names() -> None:
    """KEDA would send them, but a user who may write graphs need not have the right to create ScaledObjects."""
    harness = AutoscalerDesk()
    condition = await harness.condition(_authenticated({"name": "central", "kind": "ClusterTriggerAuthentication"}))
    assert harness.api.kinds() == []
    assert (condition.status, condition.reason) == (False, "InvalidAutoscaling")
    assert condition.message == (
        "metadata.annotations['nvidia.com/dynamo-autoscaling'].W.triggers[0].authenticationRef: ClusterTriggerAuthentication "
        "'central' serves the whole cluster; use a TriggerAuthentication of this namespace, or ask the platform's administrators "
        "to add 'central' to platform.scaler.clusterTriggerAuthentications"
    )


@pytest.mark.parametrize("kind", ["SomethingOfALaterKeda", ["ClusterTriggerAuthentication"], 1])
async def test_only_authentications_of_the_namespace_are_allowed_by_default(kind: Any) -> None:
    harness = AutoscalerDesk()
    condition = await harness.condition(_authenticated({"name": "central", "kind": kind}))
    assert (harness.api.kinds(), condition.status) == ([], False)


@pytest.mark.parametrize(
    "reference", [{"name": "own"}, {"name": "own", "kind": "TriggerAuthentication"}, {"name": "own", "kind": ""}, None]
)
async def test_secrets_of_the_namespace_may_be_used(reference: Any) -> None:
    harness = AutoscalerDesk()
    await harness.ask(_authenticated(reference))
    assert harness.api.kinds() == ["ScaledObject"]


async def test_secrets_of_the_cluster_that_the_settings_name_may_be_used() -> None:
    harness = AutoscalerDesk()
    harness.autoscalers = replace(harness.autoscalers, cluster_authentications=frozenset({"central"}))
    await harness.ask(_authenticated({"name": "central", "kind": "ClusterTriggerAuthentication"}))
    assert harness.api.kinds() == ["ScaledObject"]
    other = _authenticated({"name": "other", "kind": "ClusterTriggerAuthentication"})
    assert (await harness.condition(other)).status is False
