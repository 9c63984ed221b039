"""New pods that start from a PodSnapshot: the rows of the reference's own tests, and other cases."""

import asyncio
import copy
import json
from typing import Any, cast

import pytest
from dynamo_admission.registration import Address, Registration, configurations
from dynamo_admission.restore import MAX_POD, PodRestorer, finder, restored
from dynamo_admission.review import LONGEST_LINE, WARNING_LENGTH, ReviewVerdict
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import POD_SNAPSHOTS, ObjectKey
from dynamo_shared.kube.errors import KubeError, NotFound, NotServed, ResponseTooLarge, Unavailable

from .reviewing import question

HASH, OWNER, PROFILE = "0" * 64, "uid-of-graph", "profiles/block-iouring.json"
LABELS = {
    "nvidia.com/dynamo-component": "Worker",
    "nvidia.com/dynamo-component-type": "worker",
    "nvidia.com/dynamo-namespace": "team-chat",
    "nvidia.com/selector": "chat-worker",
}
VLLM = {"command": ["python3", "-m", "dynamo.vllm"]}
LIVE = {
    "httpGet": {"path": "/live", "port": "system"},
    "periodSeconds": 5,
    "timeoutSeconds": 4,
    "initialDelaySeconds": 9,
}


def dynamo(**own: str) -> dict[str, str]:
    return {f"nvidia.com/dynamo-{name.replace('_', '-')}": value for name, value in own.items()}


def snapshot(ready: bool = True, owner: str = "", **own: str) -> KubeObject:
    given = {
        "snapshot_compatibility_version": "v2",
        "snapshot_compatibility_hash": HASH,
        "snapshot_gms_mode": "disabled",
        **({"auto_checkpoint": "true", "checkpoint_owner_uid": owner} if owner else {}),
        **own,
    }
    metadata = {"name": "snap", "namespace": "team", "uid": "uid-of-snap", "annotations": dynamo(**given)}
    spec = {"source": {"podRef": {"name": "p", "containers": ["main"]}}}
    status = {"boundSnapshotContentName": "content", "conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": metadata, "spec": spec, "status": status}


def job(completed: bool = True, **own: str) -> KubeObject:
    annotations = dynamo(auto_checkpoint="true", checkpoint_owner_uid=OWNER, **own)
    return {
        "metadata": {"name": "job", "namespace": "team", "uid": "uid-of-job", "annotations": annotations},
        "status": {
            "podSnapshotName": "snap",
            "podSnapshotUID": "uid-of-snap",
            "conditions": [{"type": "Completed", "status": str(completed)}],
        },
    }


def pod(*containers: KubeObject, **own: str) -> KubeObject:
    given = {
        "checkpoint_restore_candidate": "true",
        "restore_snapshot_compatibility_hash": HASH,
        "restore_target_containers": "main",
        "checkpoint_startup_policy": "Immediate",
        **own,
    }
    metadata = {"labels": dict(LABELS), "annotations": dynamo(**given)}
    spec = {"containers": [*(containers or ({"name": "main", **VLLM},))]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def of_job(*containers: KubeObject, **own: str) -> KubeObject:
    given = {"restore_snapshot_job_uid": "uid-of-job", **own}
    return pod(*containers, checkpoint_name="job", restore_source_kind="SnapshotJob", **given)


def named(*containers: KubeObject, **own: str) -> KubeObject:
    given = {"restore_snapshot_uid": "uid-of-snap", "restore_snapshot_content": "content", **own}
    return pod(*containers, checkpoint_name="snap", restore_source_kind="PodSnapshot", **given)


def answer(about: KubeObject, *there: KubeObject, profile: str = PROFILE, away: bool = False) -> ReviewVerdict:
    known = {each["metadata"]["name"]: each for each in there}

    async def find(_: Any, key: Any) -> KubeObject | None:
        if away:
            raise Unavailable(0, "Away", "the API server is away")
        assert key.namespace == "team", "of no other namespace, whatever the pod says"
        return known.get(key.name)

    return asyncio.run(PodRestorer(find, profile).review(question(about)))


def patched(about: KubeObject, verdict: ReviewVerdict) -> KubeObject:
    """The pod after the patch, whose paths all are one or two steps below a known parent."""
    made = copy.deepcopy(about)
    for each in verdict.patch:
        *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in each["path"].split("/")[1:]]
        at: Any = made
        for step in parents:
            at = at[int(step)] if isinstance(at, list) else at[step]
        if each["op"] == "remove":
            del at[last]
        else:
            at[int(last) if isinstance(at, list) else last] = each["value"]
    return made


def test_a_pod_of_a_completed_job_starts_from_its_snapshot():
    about = of_job({"name": "main", **VLLM, "livenessProbe": LIVE}, {"name": "log", "command": ["tail"]})
    verdict = answer(about, job(), snapshot(owner=OWNER))
    assert verdict.refusal is None
    made = patched(about, verdict)
    assert made["metadata"]["annotations"] == {"nvidia.com/restore-from": "snap"}
    assert made["spec"]["volumes"] == [{"name": "snapshot-control", "emptyDir": {}}]
    main, log = made["spec"]["containers"]
    assert log == {"name": "log", "command": ["tail"]}
    assert main["volumeMounts"] == [{"name": "snapshot-control", "mountPath": "/snapshot-control", "subPath": "main"}]
    assert {each["name"]: each["value"] for each in main["env"]} == {
        "SNAPSHOT_CONTROL_DIR": "/snapshot-control",
        "DYN_SNAPSHOT_CONTROL_DIR": "/snapshot-control",
        "SNAPSHOT_RESTORE_STANDBY": "1",
    }
    assert main["securityContext"]["seccompProfile"] == {"type": "Localhost", "localhostProfile": PROFILE}
    assert main["livenessProbe"] == LIVE
    assert main["startupProbe"] == {
        "httpGet": LIVE["httpGet"],
        "timeoutSeconds": 4,
        "periodSeconds": 1,
        "failureThreshold": 1800,
        "successThreshold": 1,
    }
    assert main["command"] == VLLM["command"], "the engine itself waits"


def test_one_captured_container_can_be_restored_into_several():
    engines = [{"name": name, **VLLM} for name in ("engine-0", "engine-1")]
    about = named(*engines, restore_target_containers="engine-0,engine-1")
    made = patched(about, answer(about, snapshot(), profile=""))
    assert made["metadata"]["annotations"]["nvidia.com/restore-container-map"] == "main=engine-0,main=engine-1"
    for each in made["spec"]["containers"]:
        assert each["volumeMounts"][0]["subPath"] == each["name"]
        assert each["startupProbe"]["exec"]["command"] == ["cat", "/snapshot-control/restore-complete"]
        assert "securityContext" not in each


def test_existing_changes_are_not_made_again():
    about = of_job()
    once = patched(about, answer(about, job(), snapshot(owner=OWNER)))
    once["metadata"]["annotations"] |= about["metadata"]["annotations"]
    again = patched(once, answer(once, job(), snapshot(owner=OWNER)))
    assert again["spec"] == once["spec"]


UNREADY = snapshot(ready=False, owner=OWNER)
_READY = snapshot(owner=OWNER)
DELETED = {**_READY, "metadata": {**_READY["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
OTHER_JOB = {**job(), "metadata": {**job()["metadata"], "uid": "another"}}
FAILED = {**job(), "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "JobFailed"}]}}
UNAVAILABLE = {
    "pending": (job(completed=False),),
    "failed": (FAILED,),
    "gone": (),
    "followed by another": (OTHER_JOB, snapshot(owner=OWNER)),
    "without its snapshot": (job(),),
    "snapshot not ready": (job(), UNREADY),
    "snapshot being deleted": (job(), DELETED),
}


@pytest.mark.parametrize("there", UNAVAILABLE.values(), ids=UNAVAILABLE.keys())
def test_a_pending_snapshot_holds_only_pods_that_wait_for_it(there):
    immediate = answer(of_job(), *there)
    assert (immediate.refusal, immediate.patch, immediate.skipped) == (None, (), True)
    waiting = answer(of_job(checkpoint_startup_policy="WaitForCheckpoint"), *there)
    assert waiting.refusal is not None
    assert waiting.refusal.message.startswith("the pod waits for its checkpoint: ")


UNUSABLE = {
    "failed": (job(), {**snapshot(owner=OWNER), "status": {"conditions": [{"type": "Failed", "status": "True"}]}}),
    "of another graph": (job(), snapshot(owner="another")),
    "of another engine": (job(), snapshot(owner=OWNER, snapshot_compatibility_hash="1" * 64)),
    "by hand": ({**job(), "metadata": {**job()["metadata"], "annotations": {}}}, snapshot(owner=OWNER)),
}


@pytest.mark.parametrize("there", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_unusable_snapshot_stops_only_pods_that_wait_for_it(there):
    """The pods of a graph that may start without a snapshot did not start any more."""
    immediate = answer(of_job(), *there)
    assert (immediate.refusal, immediate.patch, immediate.skipped) == (None, (), True)
    assert answer(of_job(checkpoint_startup_policy="WaitForCheckpoint"), *there).refusal is not None


def test_a_pod_that_cannot_be_restored_starts_unless_it_waits():
    profiled = {"name": "main", **VLLM, "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}
    immediate = answer(of_job(profiled), job(), snapshot(owner=OWNER))
    assert (immediate.refusal, immediate.patch, immediate.skipped) == (None, (), True)
    (warning,) = immediate.warnings
    assert warning.startswith("the pod starts without its checkpoint: container main has another seccompProfile")
    waiting = answer(of_job(profiled, checkpoint_startup_policy="WaitForCheckpoint"), job(), snapshot(owner=OWNER))
    assert waiting.refusal is not None


def test_an_unreachable_api_server_stops_only_pods_that_need_a_snapshot():
    assert answer(of_job(), away=True).skipped
    assert answer(named(), away=True).refusal is not None


@pytest.mark.parametrize(
    ("error", "there"),
    [
        (None, True),
        (NotFound(404, "NotFound", "gone"), False),
        (NotServed(404, "NotFound", "no such kind"), False),
        (ResponseTooLarge(200, "ResponseTooLarge", "an author's million entries"), False),
    ],
)
def test_a_missing_and_a_too_large_object_count_as_gone(error: KubeError | None, there: bool):
    class Kube:
        async def get(self, _: Any, key: ObjectKey, *, most: int) -> KubeObject:
            assert (key.name, most) == ("snap", MAX_POD)
            if error is not None:
                raise error
            return snapshot()

    async def sought() -> KubeObject | None:
        return await finder(cast("Any", Kube()), 1.0)(POD_SNAPSHOTS, ObjectKey("team", "snap"))

    observed = asyncio.run(sought())
    assert (observed is not None) is there


def test_a_too_large_object_is_not_requested_again_for_a_while():
    """Each request costs the API server a second, and a tenant can create a hundred pods at almost no cost."""

    class Kube:
        asked = at_once = most_at_once = 0

        async def get(self, _: Any, key: ObjectKey, *, most: int) -> KubeObject:
            self.asked += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            await asyncio.sleep(0)
            self.at_once -= 1
            if key.name == "large":
                raise ResponseTooLarge(200, "ResponseTooLarge", f"more than {most}")
            return snapshot()

    async def pods() -> None:
        now = 0.0
        kube = Kube()
        find = finder(cast("Any", kube), 60.0, lambda: now)

        async def asked_for(name: str) -> int:
            before = kube.asked
            await asyncio.gather(*(find(POD_SNAPSHOTS, ObjectKey("team", name)) for _ in range(100)))
            return kube.asked - before

        assert await asked_for("large") <= 8
        assert await asked_for("large") == 0
        assert await asked_for("small") == 100
        assert kube.most_at_once == 8
        now = 30.0
        assert 0 < await asked_for("large") <= 8

    asyncio.run(pods())


def without(about: KubeObject, label: str) -> KubeObject:
    del about["metadata"]["labels"][label]
    return about


SHELL = {"name": "main", "command": ["/bin/sh", "-c"], "args": ["python3 -m dynamo.vllm"]}
REFUSED = {
    "another pod": (without(of_job(), "nvidia.com/dynamo-component"), "do not match a pod of a component"),
    "no source": (pod(restore_source_kind="SnapshotJob"), "do not match a pod of a component"),
    "kind": (pod(checkpoint_name="snap", restore_source_kind="Secret"), "neither SnapshotJob nor PodSnapshot"),
    "recreated": (named(restore_snapshot_uid="old"), "is not the one for which the pod's template was created"),
    "other content": (named(restore_snapshot_content="old"), "is bound to another PodSnapshotContent"),
    "path": (
        pod(checkpoint_name="../podsnapshots/snap", restore_source_kind="PodSnapshot"),
        "is not a valid object name",
    ),
    "hash": (named(restore_snapshot_compatibility_hash="1" * 64), "differs from this component's"),
    "shell": (named(SHELL), "container main must start its engine with python3 -m dynamo.<engine>"),
    "targets": (named(restore_target_containers="main,main"), "must name containers of the pod, each once"),
    "no target": (named(restore_target_containers="gone"), "the pod has no container gone to restore"),
    "mount": (
        named({"name": "main", **VLLM, "volumeMounts": [{"name": "x", "mountPath": "/snapshot-control"}]}),
        "a mount at /snapshot-control of container main conflicts",
    ),
    "variable": (
        named({"name": "main", **VLLM, "env": [{"name": "SNAPSHOT_RESTORE_STANDBY", "value": "0"}]}),
        "variable SNAPSHOT_RESTORE_STANDBY of container main conflicts",
    ),
    "seccomp": (
        named({"name": "main", **VLLM, "securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
        "container main has another seccompProfile",
    ),
}


@pytest.mark.parametrize(("about", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_pod_that_cannot_be_restored_is_rejected(about, message):
    verdict = answer(about, snapshot())
    assert verdict.refusal is not None
    assert message in verdict.refusal.message


@pytest.mark.parametrize(
    ("there", "message"),
    [
        ((snapshot(ready=False),), "PodSnapshot snap is not ready"),
        ((), "PodSnapshot snap is not the one for which the pod's template was created"),
        ((snapshot(owner=OWNER, checkpoint_deletion_policy="Retain"),), "retained, and no other graph can use it"),
        ((snapshot(snapshot_compatibility_version="v1"),), "has no annotation"),
        ((snapshot(snapshot_gms_mode="IntraPod"),), "GPU memory service"),
    ],
)
def test_a_named_snapshot_must_fit(there, message):
    verdict = answer(named(), *there)
    assert verdict.refusal is not None
    assert message in verdict.refusal.message


def test_a_snapshot_of_another_graph_is_not_the_snapshot_of_a_job():
    about = of_job(checkpoint_startup_policy="WaitForCheckpoint")
    for owner in ("another", ""):
        verdict = answer(about, job(), snapshot(owner=owner))
        assert verdict.refusal is not None
        assert "was taken for another graph" in verdict.refusal.message
    by_hand = {**job(), "metadata": {**job()["metadata"], "annotations": {}}}
    verdict = answer(about, by_hand, snapshot(owner=OWNER))
    assert verdict.refusal is not None
    assert "was not created for a graph" in verdict.refusal.message


def test_the_answer_reveals_nothing_about_a_snapshot_unless_the_caller_knows_it():
    """Everyone who reaches the port can send reviews for every namespace, but no one can guess a uid."""
    failed = {**snapshot(), "status": {"conditions": [{"type": "Failed", "status": "True", "message": "of a secret"}]}}
    verdicts = [
        answer(named(restore_snapshot_uid="guessed"), *there) for there in ((), (snapshot(),), (failed,), (UNREADY,))
    ]
    assert all(verdict == verdicts[0] for verdict in verdicts)
    jobs = [
        answer(of_job(restore_snapshot_job_uid="guessed", checkpoint_startup_policy="WaitForCheckpoint"), *there)
        for there in ((), (job(),), (FAILED,), (job(), failed))
    ]
    assert all(verdict == jobs[0] for verdict in jobs)


@pytest.mark.parametrize("name", ["../podsnapshots/snap", ".", "x" * 300, 5])
def test_a_job_is_requested_only_by_a_valid_name(name):
    named_so = {**job(), "status": {**job()["status"], "podSnapshotName": name}}
    verdict = answer(of_job(checkpoint_startup_policy="WaitForCheckpoint"), named_so, snapshot(owner=OWNER))
    assert verdict.refusal is not None
    assert "the PodSnapshot of SnapshotJob job no longer exists" in verdict.refusal.message


def test_the_name_of_a_captured_container_must_be_valid():
    """It is written once for each container of a pod, and an author may write thousands of containers."""
    long = {**snapshot(), "spec": {"source": {"podRef": {"name": "p", "containers": ["m" * 64]}}}}
    verdict = answer(named(), long)
    assert verdict.refusal is not None
    assert "must name exactly one container" in verdict.refusal.message


def test_only_the_restored_containers_are_copied():
    """A pod may have as many containers as its author likes."""
    about = named({"name": "main", **VLLM}, {"name": "log", "env": [{"name": "A"}]})
    before = copy.deepcopy(about)
    made = restored(about, snapshot(), PROFILE)
    assert about == before
    assert made["spec"]["containers"][1] is about["spec"]["containers"][1]


def test_messages_are_bounded():
    said = {"type": "Failed", "status": "True", "reason": "R", "message": "m" * 30_000}
    failed = {**snapshot(owner=OWNER), "status": {"conditions": [said]}}
    waiting = answer(of_job(checkpoint_startup_policy="WaitForCheckpoint"), job(), failed)
    assert waiting.refusal is not None
    assert len(waiting.refusal.message) <= LONGEST_LINE
    (warning,) = answer(of_job(), job(), failed).warnings
    assert len(warning) <= WARNING_LENGTH
    listed = answer(named(restore_target_containers=",".join(map(str, range(100_000)))), snapshot())
    assert listed.refusal is not None
    assert len(listed.refusal.message) <= LONGEST_LINE


@pytest.mark.parametrize(
    "about",
    [
        {**of_job(), "spec": None},
        {**of_job(), "spec": {"containers": [None, {"name": []}, {"name": "main", **VLLM}], "volumes": [7]}},
        {**of_job(), "metadata": {"annotations": {**of_job()["metadata"]["annotations"], "a": 5}, "labels": LABELS}},
        {**of_job(), "metadata": {"annotations": of_job()["metadata"]["annotations"], "labels": [1]}},
        of_job({"name": "main", **VLLM, "securityContext": None, "env": "x", "livenessProbe": 5}),
    ],
    ids=["no spec", "entries", "annotation", "labels", "container"],
)
def test_junk_from_other_clients_than_the_api_server_raises_nothing(about):
    assert isinstance(answer(about, job(), snapshot(owner=OWNER)), ReviewVerdict)


def test_other_pods_are_left_alone():
    plain: KubeObject = {"kind": "Pod", "apiVersion": "v1", "metadata": {}, "spec": {"containers": []}}
    assert answer(plain).skipped
    assert answer(of_job(checkpoint_restore_candidate="false")).skipped


def test_the_api_server_sends_only_restore_candidates():
    def mutating(**fields: bool) -> list[KubeObject]:
        registered = configurations(Registration(Address("system", "dynamo-admission"), **fields))  # type: ignore[arg-type]
        return [webhook for _, obj in registered if obj["kind"].startswith("Mutating") for webhook in obj["webhooks"]]

    assert len(mutating()) == 1
    restore = mutating(restores=True)[1]
    assert restore["name"] == "restore.dynamo.nvidia.com"
    assert restore["failurePolicy"] == "Ignore"
    assert restore["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods"],
            "operations": ["CREATE"],
            "scope": "Namespaced",
        }
    ]
    (condition,) = restore["matchConditions"]
    assert json.dumps("nvidia.com/dynamo-checkpoint-restore-candidate") in condition["expression"]
