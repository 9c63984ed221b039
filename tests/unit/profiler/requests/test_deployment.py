"""RequestReconciler: the graph of a result, from when it is offered or created; a row has all that one reconcile does."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import CONFIG_MAPS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.kube.errors import NamespaceTerminating, Unavailable
from dynamo_shared.runtime import Result

from tests.building.tables import table

from .request_world import (
    CHANGED,
    NO_RIGHT,
    PROFILED,
    READY,
    REFUSED,
    SELECTED,
    SELECTION,
    UNDER_WAY,
    WRITTEN,
    World,
    config_map,
    graph,
    offered,
    output,
    ready,
    request,
)


def changed(generation: int, **parts: Any) -> KubeObject:
    """A request whose result waits, after a change of its spec was reported as one without effect."""
    said = f"{PROFILED} {READY}".replace("Validation+ValidationPassed", "Validation-SpecChangeRejected")
    obj = request("Ready", said, **parts, **SELECTION)
    obj["status"]["conditions"][0]["observedGeneration"] = generation
    return obj


new = partial(request, "Deploying", f"{PROFILED} Succeeded-Deploying", **SELECTION)
MADE = f"{PROFILED} DeploymentReady-DeploymentInProgress Succeeded-Deploying"
made = partial(request, "Deploying", MADE, **SELECTION)
deployed = partial(request, "Deployed", f"{PROFILED} DeploymentReady+DeploymentReady Succeeded+Deployed", **SELECTION)
lost = partial(
    request,
    "Failed",
    f"{PROFILED} DeploymentReady-DeploymentDeleted Succeeded-DeploymentDeleted",
    **{**SELECTION, "dgdName": ""},
)
rejected = partial(
    request, "Failed", f"{PROFILED} DeploymentReady-DeploymentRejected Succeeded-DeploymentRejected", **SELECTION
)
SERVES = "Deployed DeploymentReady+DeploymentReady Succeeded+Deployed; DeploymentReady"
IS_LOST = "Failed DeploymentReady-DeploymentDeleted Succeeded-DeploymentDeleted; DeploymentDeleted"
IS_REJECTED = "Failed DeploymentReady-DeploymentRejected Succeeded-DeploymentRejected; DeploymentRejected"
CREATE = "create DynamoGraphDeployment qwen-dgd"
NOW = f"Deploying DeploymentReady-DeploymentInProgress Succeeded-Deploying; DeploymentCreated; {CREATE}"


@table(
    {
        "offered": (World.of(ready()), "Ready"),
        "applied": (World.of(ready(), graph(), config_map()), f"Ready; patch {WRITTEN}"),
        "another's of the name": (World.of(ready(), graph("u-0"), config_map()), "Ready"),
        "not to be applied any more": (World.of(new(spec=offered)), f"Ready {READY}"),
        "to be applied now": (World.of(ready(spec={"autoApply": True}, **CHANGED)), NOW),
        "to be applied now, by the default": (World.of(ready(spec={}, **CHANGED)), NOW),
        # As the operator 1.2 leaves a request whose graph a user deleted: nothing was switched on since.
        "was to be applied all along": (World.of(ready(spec={"autoApply": True})), "Ready"),
        "reported as without effect, as by a release before this one": (
            World.of(changed(2, spec={"autoApply": True}, **CHANGED)),
            "Ready",
        ),
        "to be applied, and made for another spec": (
            World.of(changed(2, spec={"autoApply": True}, metadata={"generation": 3})),
            "Ready; SpecChangeRejected",
        ),
        "created": (
            World.of(new(), config_map()),
            f"Deploying DeploymentReady-DeploymentInProgress; DeploymentCreated; {CREATE}, patch {WRITTEN}",
        ),
        "there is another's of the name": (World.of(new(), graph("u-0")), IS_REJECTED),
        "refused": (World.of(new(), refusals={CREATE: REFUSED}), IS_REJECTED),
        "serves": (World.of(made(), graph()), SERVES),
        "another replica created it": (World.of(made(), unheard=[graph()]), SERVES),
        "news of both is late": (World.of(made(), outdated=[graph("u-0")], unheard=[graph()]), SERVES),
        "news of its end is late": (World.of(made(), outdated=[graph()]), SERVES),
        "gone before it served": (World.of(made()), IS_LOST),
        "replaced before it served": (World.of(made(), graph("u-0")), IS_REJECTED),
        "on its way": (World.of(made(), graph(state="pending")), "Deploying"),
        "no image": (World.of(made(), graph(state="pending", reason="ErrImagePull")), "Deploying; ImagePullFailed"),
        "serves still": (World.of(deployed(), graph()), "Deployed"),
        "serves, and is not cached": (World.of(deployed(), unheard=[graph()]), "Deployed"),
        "was cached": (World.of(deployed(), outdated=[graph()]), "Deployed"),
        "serves no longer": (
            World.of(deployed(), graph(state="pending")),
            "Deploying DeploymentReady-DeploymentInProgress Succeeded-Deploying; DeploymentDegraded",
        ),
        "gone": (World.of(deployed()), IS_LOST),
        "replaced": (World.of(deployed(), graph("u-0")), IS_LOST),
        "created by a user": (World.of(lost(), graph(), config_map()), f"{SERVES}; patch {WRITTEN}"),
        "created by a user, and on its way": (
            World.of(lost(), graph(state="pending")),
            "Deploying DeploymentReady-DeploymentInProgress Succeeded-Deploying",
        ),
        "the other one is gone": (World.of(rejected(), graph()), SERVES),
        "no one creates it": (World.of(lost()), "Failed"),
        "another's is created": (World.of(lost(), graph("u-0")), "Failed"),
        "on its way out": (World.of(lost(), graph(deletionTimestamp="2026-01-01T00:00:00Z")), "Failed"),
        "it failed before its graph": (World.of(request("Failed", PROFILED, **SELECTION), graph()), "Failed"),
        "nothing was selected": (World.of(request("Failed", UNDER_WAY), graph()), "Failed"),
    }
)
async def test_the_graph_is_created_once_and_followed(given, outcome):
    world = given()
    assert await world.reconcile(times=2) == Result()
    assert await world.outcome() == outcome
    status = await world.status()
    if outcome.startswith(SERVES):
        assert (status["dgdName"], status["deploymentInfo"]) == ("qwen-dgd", {"replicas": 3, "availableReplicas": 2})
    elif outcome == IS_LOST:
        assert not status.keys() & {"dgdName", "deploymentInfo"}


async def test_the_request_owns_the_graph_but_not_the_objects_that_it_reads():
    world = World(new(), config_map())
    await world.reconcile()
    graph_made = await world.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "qwen-dgd"))
    assert graph_made["metadata"]["labels"][labels.REQUEST_NAME] == "qwen"
    assert graph_made["metadata"]["annotations"][keys.REQUEST_UID] == "u-1"
    assert "ownerReferences" not in graph_made["metadata"]
    assert await owners(world) == ["DynamoGraphDeployment"]
    # One that a user applied of the result may be deleted and applied again.
    world = World(ready(), graph(), config_map())
    await world.reconcile()
    assert await owners(world) == ["DynamoGraphDeploymentRequest", "DynamoGraphDeployment"]


async def test_a_request_reads_only_its_own_config_maps_and_output_data(monkeypatch):
    """Users label ConfigMaps of a megabyte so, as many as they like: to read all took seconds of each reconcile."""
    world = World(new(), config_map(), output(phase="Done"))
    monkeypatch.setattr(world.cache, "list", lambda *_: pytest.fail("all are read"))
    await world.reconcile()
    assert await owners(world) == ["DynamoGraphDeployment"]
    kept = [world.cache.get(CONFIG_MAPS, ObjectKey("ns", f"{name}-qwen")) for name in ("planner-config", "dgdr-output")]
    assert ["data" in (each or {}) for each in kept] == [False, True]


async def test_a_result_of_operator_1_2_is_created_in_the_stored_version():
    """It wrote graphs of v1alpha1 into the status, which the API server takes under that version alone."""
    services = {"Worker": {"componentType": "worker", "replicas": 1}}
    old = {**SELECTED, "apiVersion": "nvidia.com/v1alpha1", "spec": {"services": services}}
    world = World(ready(spec={"autoApply": True}, **CHANGED, profilingResults={"selectedConfig": old}))
    await world.reconcile(times=2)
    made = await world.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "qwen-dgd"))
    assert (made["apiVersion"], [each["name"] for each in made["spec"]["components"]]) == (
        DYNAMO_GRAPH_DEPLOYMENTS.api_version,
        ["Worker"],
    )
    assert made["metadata"]["annotations"][keys.REQUEST_UID] == "u-1"


async def owners(world: World) -> list[str]:
    read = await world.kube.get(CONFIG_MAPS, ObjectKey("ns", "planner-config-qwen"))
    return [owner["kind"] for owner in read["metadata"]["ownerReferences"]]


@pytest.mark.parametrize(
    ("error", "events"),
    [
        (Unavailable(503, "ServiceUnavailable", "away"), ["DeploymentCreationFailed"]),
        (NO_RIGHT, ["DeploymentCreationFailed"]),
        # The request goes with its namespace, and has not failed.
        (NamespaceTerminating(403, "Forbidden", "ns is being terminated"), []),
    ],
)
async def test_a_graph_that_cannot_be_created_now_is_retried(error, events):
    world = World(new(), refusals={CREATE: error})
    with pytest.raises(type(error)):
        await world.reconcile()
    assert (await world.status())["phase"] == "Deploying"
    assert [line.split()[1] for line in world.announced.lines] == events


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        ({}, "spec.overrides.dgd.metadata.name"),
        ({keys.PRESERVED_FIELDS: '{"for": "v1alpha1", "version": 1}'}, "spec.deploymentOverrides.name"),
    ],
    ids=["v1beta1", "v1alpha1"],
)
async def test_status_and_events_name_fields_of_the_version_that_the_request_was_written_in(annotations, field):
    world = World(new(metadata={"annotations": annotations}), graph("u-0"))
    await world.reconcile()
    said = [each["message"] for each in (await world.status())["conditions"][-2:]] + world.announced.lines
    assert len(said) == 3
    assert all(f"with {field} in a new request" in each for each in said)
