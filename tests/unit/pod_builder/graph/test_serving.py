"""The new workers that a rolling update counts: those that frontends have admitted and that have their counterparts."""

from datetime import timedelta

import pytest
from dynamo_pod_builder.reconcilers.graph.serving import (
    ADMISSION,
    NO_ROOM,
    RECHECK,
    REGISTRATION,
    UNRESPONSIVE_AFTER,
    ServingPods,
    paired,
    serving,
)
from dynamo_pod_builder.rollout import Replicas, step
from dynamo_pod_builder.status.pods import UNSCHEDULABLE
from dynamo_shared.api.conditions import timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from hypothesis import given
from hypothesis import strategies as st

from .building import NOW, deployment, observed, stored
from .workers import component

PREFILL, DECODE = component("g-p-new", "new", component="P"), component("g-d-new", "new", component="D")
OLD_PREFILL, OLD_DECODE = component("g-p-old", "old", component="P"), component("g-d-old", "old", component="D")
LONG_AGO = 3600.0


def pod(
    type_: str, status: str, ago: float, name: str = "", containers: tuple[str, ...] = ("main",), **own: str
) -> KubeObject:
    """A pod whose condition changed that many seconds ago; `own` are labels."""
    since = timestamp(NOW - timedelta(seconds=ago))
    conditions = [{"type": type_, "status": status, "lastTransitionTime": since}]
    name = name or f"{type_}-{ago}"
    metadata = {"name": name, "uid": name, "labels": dict(own)}
    spec = {"containers": [{"name": each} for each in containers]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running", "conditions": conditions}}


def counted(
    available: dict[str, int],
    pods: dict[str, list[KubeObject]] | None = None,
    old: dict[str, int] | None = None,
    registered: dict[str, float] | None = None,
) -> ServingPods:
    """What counts of a new prefill and decode worker; by name of their component deployments.

    `registered`: by uid of pods, how many seconds ago.
    """
    serve = old if old is not None else {"g-p-old": 1, "g-d-old": 1}
    workloads = {name: deployment(name, 1, count) for name, count in {**available, **serve}.items()}
    leftovers = {"P": [stored(OLD_PREFILL)], "D": [stored(OLD_DECODE)]}
    since = {uid: NOW - timedelta(seconds=ago) for uid, ago in (registered or {}).items()}
    world = observed(workloads=workloads, pods=pods, registered=since)
    return serving({"P": PREFILL, "D": DECODE}, leftovers, world)


NEITHER, BOTH_COUNT, PREFILL_COUNTS = {"P": 0, "D": 0}, {"P": 1, "D": 1}, {"P": 1, "D": 0}
BOTH = {"g-p-new": 1, "g-d-new": 1}
NO_DECODE = {"g-p-new": 1, "g-d-new": 0}
OLD_FAILS = {"g-p-old": 1, "g-d-old": 0}


def decode(type_: str, status: str, ago: float, message: str = "") -> dict[str, list[KubeObject]]:
    """The only pod of the new decode worker."""
    made = pod(type_, status, ago)
    made["status"]["conditions"][0]["message"] = message
    return {"g-d-new": [made]}


#: The scheduler's message about two nodes: one where nothing would help, and one where other pods take the room.
NO_NODE = (
    "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/2 nodes are available: "
    "2 Preemption is not helpful for scheduling."
)
FULL = (
    "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s). preemption: "
    "0/2 nodes are available: 1 No preemption victims ..., 1 Preemption is not helpful for scheduling."
)

#: Available pods of the new generation, its pods, available pods of the old one if not all; then the counts, until
#: when.
COUNTS = {
    "nothing new is there": ({}, {}, None, (NEITHER, None)),
    "a prefill worker without a decode worker": ({"g-p-new": 1}, {}, None, (NEITHER, None)),
    "both": (BOTH, {}, None, (BOTH_COUNT, None)),
    "frontends have not admitted one yet": (
        BOTH,
        {**decode("Ready", "True", 3), "g-p-new": [pod("Ready", "True", LONG_AGO)]},
        None,
        (NEITHER, ADMISSION.seconds - 3),
    ),
    "frontends have had their time": (BOTH, decode("Ready", "True", ADMISSION.seconds), None, (BOTH_COUNT, None)),
    "the clock of the node is ahead": (BOTH, decode("Ready", "True", -LONG_AGO), None, (BOTH_COUNT, None)),
    "its workload is not observed": ({"g-p-new": 1}, decode("PodScheduled", "False", 60), None, (NEITHER, None)),
    "no room for the other": (NO_DECODE, decode("PodScheduled", "False", 60), None, (NEITHER, NO_ROOM.seconds - 60)),
    "no room for too long": (NO_DECODE, decode("PodScheduled", "False", NO_ROOM.seconds), None, (PREFILL_COUNTS, None)),
    "some nodes are full, and others do not fit": (
        NO_DECODE,
        decode("PodScheduled", "False", NO_ROOM.seconds, FULL),
        None,
        (PREFILL_COUNTS, None),
    ),
    "it fits no node": (NO_DECODE, decode("PodScheduled", "False", NO_ROOM.seconds, NO_NODE), None, (NEITHER, None)),
    "the old generation does not serve just now": ({"g-p-new": 1}, {}, OLD_FAILS, (NEITHER, None)),
    "the old generation does not serve, so that no node is kept for it": (
        NO_DECODE,
        decode("PodScheduled", "False", 60),
        OLD_FAILS,
        (PREFILL_COUNTS, NO_ROOM.seconds - 60),
    ),
}


@pytest.mark.parametrize(("available", "pods", "old", "expected"), COUNTS.values(), ids=COUNTS)
def test_counts_of_a_new_generation(available, pods, old, expected):
    result = counted(available, pods, old)
    assert (result.pods, result.again) == expected


def test_old_generations_that_serve_keep_their_nodes_for_a_time():
    waits = decode("PodScheduled", "False", NO_ROOM.seconds - 1)
    assert counted({"g-d-new": 0}, waits) == ServingPods({"P": 0, "D": 0}, 1, {"old": 1.0})
    waits = decode("PodScheduled", "False", NO_ROOM.seconds)
    crowded = {"D": UNSCHEDULABLE}
    assert counted({"g-d-new": 0}, waits) == ServingPods(
        {"P": 0, "D": 0}, None, {"old": 1.0}, no_room=True, crowded=crowded
    )
    assert counted({}, old={"g-p-old": 0, "g-d-old": 1}).old == {}


def test_replicas_that_are_being_removed_do_not_count_as_serving():
    """Otherwise the nearly removed generation is kept, and the one that has taken over is removed."""
    parts = {"P": [component("g-p-old", "old", 1)], "D": [component("g-d-old", "old", 4)]}
    desired = {"P": component("g-p-new", "new", 4), "D": component("g-d-new", "new", 4)}
    workloads = {"g-p-old": deployment("g-p-old", 4), "g-d-old": deployment("g-d-old", 4)}
    there = [stored(dcd) for part in parts.values() for dcd in part]
    assert serving(desired, parts, observed(*there, workloads=workloads)).old == {"old": 0.25}


WAITS = decode("PodScheduled", "False", 30)
LONG_WAIT = decode("PodScheduled", "False", NO_ROOM.seconds)
OLD_FITS = pod("Ready", "True", LONG_AGO)


def failing(ago: float, *others: KubeObject) -> dict[str, list[KubeObject]]:
    """The old decode worker has been unready for that time, and a new one waits for its node."""
    return {**WAITS, "g-d-old": [pod("Ready", "False", ago), *others]}


def replacement(ago: float) -> KubeObject:
    """A pod that was created that many seconds ago, and has no node."""
    created = timestamp(NOW - timedelta(seconds=ago))
    return {"metadata": {"name": "p", "uid": "p", "creationTimestamp": created}, "status": {"phase": "Pending"}}


#: Available pods of the old generation, pods of both; whether the old ones make way, and when to check again.
MAKES_WAY = {
    "it serves": ({"g-p-old": 1, "g-d-old": 1}, WAITS, (False, NO_ROOM.seconds - 30)),
    "no pod of it is there": (OLD_FAILS, WAITS, (True, NO_ROOM.seconds - 30)),
    "one of its components has failed for long": (OLD_FAILS, failing(LONG_AGO), (True, NO_ROOM.seconds - 30)),
    "a probe has failed": (OLD_FAILS, failing(5), (False, UNRESPONSIVE_AFTER.seconds - 5)),
    "replaced just now": (OLD_FAILS, {**WAITS, "g-d-old": [replacement(5)]}, (False, UNRESPONSIVE_AFTER.seconds - 5)),
    "replaced long ago": (OLD_FAILS, {**WAITS, "g-d-old": [replacement(LONG_AGO)]}, (True, NO_ROOM.seconds - 30)),
    "its node no longer reports": (
        OLD_FAILS,
        {**WAITS, "g-d-old": [pod("Ready", "Unknown", 5)]},
        (False, UNRESPONSIVE_AFTER.seconds - 5),
    ),
    "its workload has not counted a pod yet": (OLD_FAILS, failing(LONG_AGO, OLD_FITS), (False, NO_ROOM.seconds - 30)),
    "a worker of its engine is ready, and the leader is not": (
        OLD_FAILS,
        failing(LONG_AGO, pod("Ready", "True", LONG_AGO, "worker", ("main",), **{labels.ROLE: "worker"})),
        (True, NO_ROOM.seconds - 30),
    ),
    "new ones have started, and register": (OLD_FAILS, decode("Ready", "True", 1), (False, ADMISSION.seconds - 1)),
}


@pytest.mark.parametrize(("old", "pods", "expected"), MAKES_WAY.values(), ids=MAKES_WAY)
def test_an_old_generation_that_does_not_serve_makes_way_for_a_new_one_that_lacks_room(old, pods, expected):
    result = counted(NO_DECODE, pods, old)
    assert (result.makes_way, result.again) == expected


@pytest.mark.parametrize("waits", [WAITS, LONG_WAIT], ids=["for a moment", "for long"])
def test_workers_without_counterparts_make_way(waits):
    """There was room for a new prefill worker only, which replaced the old one."""
    workloads = {
        "g-p-new": deployment("g-p-new"),
        "g-d-new": deployment("g-d-new", 1, 0),
        "g-d-old": deployment("g-d-old"),
    }
    drained = stored({**OLD_PREFILL, "spec": {**OLD_PREFILL["spec"], "replicas": 0}})
    world = observed(workloads=workloads, pods=waits)
    result = serving({"P": PREFILL, "D": DECODE}, {"P": [drained], "D": [stored(OLD_DECODE)]}, world)
    assert (result.makes_way, result.again) == ((True, None) if waits is LONG_WAIT else (False, NO_ROOM.seconds - 30))


@pytest.mark.parametrize(("replicas", "ago", "makes_way"), [(1, LONG_AGO, True), (1, 5, False), (2, LONG_AGO, False)])
def test_an_engine_whose_pods_are_recreated_at_each_crash_makes_way(replicas, ago, makes_way):
    """Its pods are always young. With several replicas, the status does not say whether one served."""
    since = timestamp(NOW - timedelta(seconds=ago))
    unavailable = {"type": "Available", "status": "False", "reason": "x", "lastTransitionTime": since}
    old = stored(component("g-d-old", "old", replicas, component="D"), status={"conditions": [unavailable]})
    workloads = {"g-d-new": deployment("g-d-new", 1, 0), "g-d-old": deployment("g-d-old", replicas, 0)}
    world = observed(workloads=workloads, pods=failing(5))
    assert serving({"D": DECODE}, {"D": [old]}, world).makes_way is makes_way


@pytest.mark.parametrize(("old", "makes_way"), [(0, True), (1, False)], ids=["does not serve", "serves"])
def test_an_old_generation_that_does_not_serve_makes_way_for_pods_that_a_quota_rejects(old, makes_way):
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: gpus"}
    new = deployment("g-d-new", 1, 0)
    new["status"]["conditions"].append(refused)
    world = observed(workloads={"g-d-new": new, "g-d-old": deployment("g-d-old", 1, old)})
    assert serving({"D": DECODE}, {"D": [stored(OLD_DECODE)]}, world).makes_way is makes_way


OLD = {"g-p-old": [pod("Ready", "True", LONG_AGO, "p-old")], "g-d-old": [pod("Ready", "True", LONG_AGO, "d-old")]}


def ready(ago: float, *containers: str, **own: str) -> dict[str, list[KubeObject]]:
    """The pods of both generations; the new ones have been ready for that time."""
    of_pod = {labels.DISCOVERY_ENABLED: "true", **own}
    new = {
        "g-p-new": [pod("Ready", "True", LONG_AGO, "p-new")],
        "g-d-new": [pod("Ready", "True", ago, "d-new", containers or ("main",), **of_pod)],
    }
    return {**OLD, **new}


OTHERS = {"p-old": LONG_AGO, "d-old": LONG_AGO, "p-new": LONG_AGO}
#: The pods, who registered how long ago; then the counts, until when, and the pods that have not registered.
KNOWN = {
    "no one registers in Kubernetes": (ready(60), {}, (BOTH_COUNT, None, {})),
    "only new ones register": (ready(60), {"d-new": 60.0, "p-new": 60.0}, (BOTH_COUNT, None, {})),
    "ready, and not registered as the old ones are": (ready(60), OTHERS, (NEITHER, RECHECK, {"D": ["d-new"]})),
    "nor the old ones of its component": (ready(60), {"p-old": LONG_AGO, "p-new": LONG_AGO}, (BOTH_COUNT, None, {})),
    "registered late: not admitted yet": (ready(60), {**OTHERS, "d-new": 2.0}, (NEITHER, ADMISSION.seconds - 2, {})),
    "registered late, and admitted": (ready(60), {**OTHERS, "d-new": 30.0}, (BOTH_COUNT, None, {})),
    "it has had its time": (ready(REGISTRATION.seconds), OTHERS, (BOTH_COUNT, None, {})),
    "on several nodes the leader registers": (ready(60, **{labels.ROLE: "worker"}), OTHERS, (BOTH_COUNT, None, {})),
    "engines within a pod register by other names": (ready(60, "engine-0", "engine-1"), OTHERS, (BOTH_COUNT, None, {})),
}


@pytest.mark.parametrize(("pods", "registered", "expected"), KNOWN.values(), ids=KNOWN)
def test_new_workers_that_frontends_cannot_discover_do_not_count(pods, registered, expected):
    """A pod may become ready before its worker registers, for example with probes of the user."""
    result = counted(BOTH, pods, registered=registered)
    assert (result.pods, result.again, result.unregistered) == expected


def test_a_pod_that_just_became_ready_and_has_not_registered_is_subtracted_once():
    pods = ready(60)
    pods["g-d-new"] += [pod("Ready", "True", 2, "d-newer", ("main",), **{labels.DISCOVERY_ENABLED: "true"})]
    registered = dict.fromkeys(("p-old", "d-old", "p-new", "d-new"), 60.0)
    assert counted({"g-p-new": 1, "g-d-new": 2}, pods, registered=registered).pods == {"P": 1, "D": 1}


def test_registration_is_not_awaited_if_no_old_generation_serves():
    result = counted(BOTH, ready(60), OLD_FAILS, OTHERS)
    assert (result.pods, result.unregistered) == (BOTH_COUNT, {})


@pytest.mark.parametrize(
    ("available", "desired", "expected"),
    [
        ({"W": 2}, {"W": 4}, {"W": 2}),
        ({"P": 1, "D": 1}, {"P": 4, "D": 1}, {"P": 1, "D": 0}),
        ({"P": 4, "D": 1}, {"P": 4, "D": 2}, {"P": 2, "D": 1}),
        ({"P": 3, "D": 0}, {"P": 3, "D": 0}, {"P": 3, "D": 0}),
        ({"P": 5, "D": 2}, {"P": 3, "D": 2}, {"P": 3, "D": 2}),
        ({"P": 0}, {"P": 0}, {"P": 0}),
    ],
)
def test_pods_count_by_the_component_with_the_least_progress(available, desired, expected):
    assert paired(available, desired) == expected


COMPONENT = st.tuples(st.integers(1, 8), st.integers(0, 3), st.integers(0, 3))


@given(components=st.lists(COMPONENT, min_size=1, max_size=3), slow=st.data())
def test_every_update_ends_and_one_generation_or_the_other_serves(components, slow):
    """The loop simulates the cluster: pods of any component may take longer than those of the others."""
    margins = [(surge or int(not unavailable), unavailable) for _, surge, unavailable in components]
    desired = {str(number): each[0] for number, each in enumerate(components)}
    new = {name: Replicas("new", 0, 0, 0) for name in desired}
    old = {name: Replicas("old", count, count, count) for name, count in desired.items()}
    for turn in range(400):
        pods = paired({name: each.available for name, each in new.items()}, desired)
        moves = {
            name: step(count, Replicas("new", new[name].replicas, pods[name], new[name].ready), [old[name]], *margin)
            for (name, count), margin in zip(desired.items(), margins, strict=True)
        }
        if all(each.done for each in moves.values()):
            break
        for name, move in moves.items():
            # Each existing pod becomes available at its own time, and in the end all do.
            late = turn < 40 and slow.draw(st.booleans())
            ready = new[name].available if late else new[name].replicas
            new[name] = Replicas("new", move.new, min(ready, move.new), min(ready, move.new))
            left = move.old["old"]
            old[name] = Replicas("old", left, left, left)
        serves = {name: new[name].available + old[name].available for name in desired}
        together = paired({name: each.available for name, each in new.items()}, desired)
        for (name, count), (_, unavailable) in zip(desired.items(), margins, strict=True):
            assert serves[name] >= count - unavailable
            if unavailable == 0 and old[name].available == 0:
                assert together[name] == count, "the last old one goes when all new ones have their counterparts"
    else:
        pytest.fail(f"no end: {new} {old}")
