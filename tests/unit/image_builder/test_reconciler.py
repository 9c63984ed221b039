"""The reconciler of requests: builds, shared builds, and the status."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from dynamo_image_builder import queue, reconciler
from dynamo_image_builder.archives import ArchiveRead, Archives
from dynamo_image_builder.builds import BentoTag
from dynamo_image_builder.fetch import Archive, FetchError
from dynamo_image_builder.metrics import BuildMetrics
from dynamo_image_builder.reconciler import NimRequestReconciler
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, JOBS, ObjectKey, Resource, of
from dynamo_shared.kube.client import KubeObjects
from dynamo_shared.kube.errors import Forbidden, KubeError, NamespaceTerminating, NotFound, WebhookUnavailable
from dynamo_shared.runtime import Result, WorkQueue
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings.image_builder import ImageBuilder
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state.cache import ObjectCache
from prometheus_client import CollectorRegistry

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.building.waiting import turns
from tests.unit.announced import Announced

from .building import ARCHIVE, DIGEST, NOW, build, ended, job, request, settings

BUILT = ended("build", f"digest={DIGEST}\n#9 DONE")
PLACE = f"dynamo-builds/{build().job}"
JOB = ObjectKey("dynamo-builds", build().job)
CREATE, DELETE = f"create Job {build().job}", f"delete Job {build().job}"


class Store:
    """A store with one archive."""

    def __init__(self, refusal: FetchError | None = None) -> None:
        self.refusal = refusal
        self.asked = 0

    async def find(self, tag: BentoTag) -> Archive:
        self.asked += 1
        if self.refusal is not None:
            raise self.refusal
        return Archive(ARCHIVE, 10)


class Stage:
    """The reconciler with the test's own cache and servers."""

    def __init__(
        self,
        *stored: KubeObject,
        store: Store | None = None,
        of: ImageBuilder | None = None,
        refusal: KubeError | None = None,
    ) -> None:
        self.kube = MemoryKube(*stored, refusals={CREATE: refusal} if refusal else {})
        self.cache, self.store, self.announced = ObjectCache(), store or Store(), Announced()
        self.registry = CollectorRegistry()
        self.reads: WorkQueue[ArchiveRead] = WorkQueue(metrics=Metrics().queue("archives"))
        finder: Any = self.store
        self.archives = Archives(finder, self.reads, self.cache, lambda _: None)
        reconciler.index(self.cache)
        self.hear(DYNAMO_NIM_REQUESTS)
        kube: Any = self.kube
        self.reconciler = NimRequestReconciler(
            kube,
            self.cache,
            self.archives,
            StatusWriter(kube, self.cache, ManualClock()),
            self.announced,
            BuildMetrics(self.registry),
            of or settings(),
            lambda: NOW,
        )

    async def reconcile(self, name: str = "one", namespace: str = "ns") -> Result:
        """Reconcile a request, and again when its archive was read."""
        result = await self.reconciler.reconcile(ObjectKey(namespace, name))
        while len(self.reads):
            archive = await self.reads.get()
            await self.archives.read(archive)
            self.reads.done(archive)
            result = await self.reconciler.reconcile(ObjectKey(namespace, name))
        return result

    def status(self, name: str = "one") -> KubeObject:
        observed = self.cache.get(DYNAMO_NIM_REQUESTS, ObjectKey("ns", name))
        assert observed is not None
        status: KubeObject = observed["status"]
        return status

    def answers(self) -> dict[str, float]:
        (metric,) = self.registry.collect()
        return {each.labels["result"]: each.value for each in metric.samples if each.name.endswith("_total")}

    def put(self, obj: KubeObject) -> None:
        """A write of another user, which the cache receives."""
        self.kube.put(obj)
        self.hear(of(obj))

    def hear(self, resource: Resource) -> None:
        """Copy the stored objects of a resource into the cache."""
        for obj in self.kube.stored(resource):
            self.cache.put(resource, obj)


def reason(status: KubeObject) -> str:
    reasons = {each["reason"] for each in status["conditions"]}
    assert len(reasons) == 1
    return str(reasons.pop())


def held(status: KubeObject) -> list[str]:
    return [each["type"] for each in status["conditions"] if each["status"] == "True"]


async def test_a_request_creates_a_job_and_then_has_its_image() -> None:
    stage = Stage(request())
    assert (await stage.reconcile()).requeue_after == reconciler.FOLLOW
    assert stage.kube.writes == [CREATE]
    status = stage.status()
    assert (status["phase"], status["job"], status["archiveDigest"]) == ("Building", PLACE, ARCHIVE)
    assert held(status) == ["Progressing"]
    assert "imageRef" not in status

    stage.kube.put(job("Complete"))
    stage.kube.put(BUILT)
    stage.hear(JOBS)
    assert (await stage.reconcile()).requeue_after is None
    status = stage.status()
    assert (status["phase"], status["digest"], status["cached"]) == ("Ready", DIGEST, False)
    assert status["imageRef"] == build().image_ref(DIGEST)
    assert status["image"] == build().target.pull
    assert (status["durationSeconds"], status["log"]) == (94, "#9 DONE")
    assert held(status) == ["Ready"]
    assert (await stage.kube.get(JOBS, JOB))["metadata"]["annotations"][keys.IMAGE_DIGEST] == DIGEST
    assert stage.store.asked == 1
    assert stage.announced.lines == [
        f"Normal ImageBuilding Build: Job {build().job} in namespace dynamo-builds builds the image",
        f"Normal ImageReady Build: the image is pushed as {DIGEST}",
    ]
    assert stage.announced.events == ["building", "ready"]
    assert [fact.identity for fact in stage.announced.facts] == ["Building", "Built"]
    assert stage.answers() == {"built": 1}
    # The answer stays, without further requests.
    assert (await stage.reconcile()).requeue_after is None
    assert stage.store.asked == 1


async def test_ten_requests_for_one_tag_are_one_build() -> None:
    names = [f"r{number}" for number in range(10)]
    stage = Stage(*(request(name) for name in names))
    for name in names:
        await stage.reconcile(name)
    assert stage.kube.writes == [CREATE]
    stage.kube.put(job("Complete"))
    stage.kube.put(BUILT)
    stage.hear(JOBS)
    for name in names:
        await stage.reconcile(name)
    assert {stage.status(name)["digest"] for name in names} == {DIGEST}
    assert not any(stage.status(name)["cached"] for name in names)


async def test_requests_for_one_build_share_the_list_of_its_pods() -> None:
    """A thousand requests for one build listed its pods a thousand times, every ten seconds."""
    names = [f"r{number}" for number in range(10)]
    stage = Stage(*(request(name) for name in names))
    lists: list[str] = []
    listed = stage.kube.list

    async def counted(resource: Resource, namespace: str = "", **selected: Any) -> KubeObjects:
        lists.append(resource.kind)
        return await listed(resource, namespace, **selected)

    stage.kube.list = counted  # type: ignore[method-assign]
    for name in names:
        await stage.reconcile(name)
    assert lists == ["Pod"]
    stage.kube.put(job("Complete"))
    stage.kube.put(BUILT)
    stage.hear(JOBS)
    for name in names:
        await stage.reconcile(name)
    assert {stage.status(name)["digest"] for name in names} == {DIGEST}
    assert lists == ["Pod", "Pod", "Pod"], "again for its end, and for the digest that is noted on the Job"


async def test_pods_are_listed_again_after_the_clock_was_set_back() -> None:
    """For an hour, the status did not say why a build was not under way."""
    stage = Stage(job(), request())
    await stage.reconcile()
    waits = {"type": "PodScheduled", "status": "False", "message": "no node has the memory"}
    stage.kube.put({**ended("fetch"), "status": {"conditions": [waits]}})
    stage.reconciler.now = lambda: NOW - timedelta(hours=1)
    await stage.reconcile()
    assert reason(stage.status()) == "Unschedulable"


@pytest.mark.parametrize(("minute", "again"), [(9, 10.0), (5, 30.0), (0, 60.0)])
async def test_pods_of_a_long_build_are_listed_less_and_less_often(minute: int, again: float) -> None:
    """Each waiting request listed them every ten seconds during the whole build."""
    under_way = job()
    under_way["metadata"]["creationTimestamp"] = f"2026-01-02T00:{minute:02}:00Z"
    assert (await Stage(under_way, request()).reconcile()).requeue_after == again


@pytest.mark.parametrize("what_is_left", ["job", "request"])
async def test_the_same_archive_is_not_built_again(what_is_left: str) -> None:
    stage = Stage(job("Complete"), BUILT, request())
    await stage.reconcile()
    status = stage.status()
    assert (status["phase"], status["cached"], status["digest"]) == ("Ready", True, DIGEST)
    assert "durationSeconds" not in status
    if what_is_left == "request":
        stage.kube.remove(JOBS, JOB)
    stage.put(request("two"))
    await stage.reconcile("two")
    assert stage.status("two")["imageRef"] == status["imageRef"]
    assert stage.status("two")["cached"] is True
    assert CREATE not in stage.kube.writes
    assert stage.answers() == {"cached": 2}


async def test_a_status_in_another_namespace_does_not_define_the_image() -> None:
    """A user who may write statuses there could name any digest."""
    other = request("other", status={"phase": "Ready", "job": PLACE, "digest": DIGEST})
    other["metadata"]["namespace"] = "elsewhere"
    stage = Stage(request(), other)
    await stage.reconcile()
    assert stage.kube.writes == [CREATE]
    assert stage.status()["phase"] == "Building"


async def test_a_failed_build_is_the_answer_and_a_later_request_retries() -> None:
    broken = job("Failed", message="Job has reached its limit")
    stage = Stage(broken, ended("build", "digest=\nERROR: no", 1), request())
    await stage.reconcile()
    status = stage.status()
    assert (status["phase"], reason(status), held(status)) == ("Failed", "BuildFailed", ["Failed"])
    assert status["conditions"][0]["message"].endswith("to try again, delete this request and create it")
    assert status["log"] == "ERROR: no"
    assert [line.partition(":")[0] for line in stage.announced.lines] == ["Warning BuildFailed Build"]
    assert stage.announced.events == ["failed"]
    assert stage.answers() == {"failed": 1}
    assert (await stage.reconcile()).requeue_after is None

    stage.put(request("later", created="2026-01-02T00:05:00Z"))
    assert (await stage.reconcile("later")).requeue_after == reconciler.REPLACE
    assert stage.kube.writes == [DELETE]
    await stage.reconcile("later")
    assert stage.kube.writes == [DELETE, CREATE]
    assert stage.status("later")["phase"] == "Building"


async def test_the_pod_that_replaced_a_lost_one_decides() -> None:
    lost, last = ended("build", "", 137), ended("build", "digest=\nERROR: no", 1)
    lost["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    for number, pod in enumerate((lost, last)):
        pod["metadata"] |= {"name": f"pod-{number}", "creationTimestamp": f"2026-01-02T00:0{number}:00Z"}
    stage = Stage(job("Failed"), lost, last, request())
    await stage.reconcile()
    assert reason(stage.status()) == "BuildFailed"


async def test_a_lost_result_is_built_again() -> None:
    stage = Stage(job("Complete"), request())
    assert (await stage.reconcile()).requeue_after == reconciler.REPLACE
    assert stage.kube.writes == [DELETE]


async def test_a_deleted_job_is_created_again() -> None:
    stage = Stage(request())
    await stage.reconcile()
    stage.cache.remove(JOBS, JOB, objects.uid(await stage.kube.get(JOBS, JOB)))
    stage.kube.remove(JOBS, JOB)
    await stage.reconcile()
    assert stage.kube.writes == [CREATE, CREATE]


@pytest.mark.parametrize(
    ("refusal", "phase"),
    [
        (FetchError("StoreUnreachable", "dynamo-store cannot be reached", temporary=True), "Pending"),
        (FetchError("ArchiveNotFound", "dynamo-store has no archive"), "Failed"),
    ],
)
async def test_an_archive_that_cannot_be_fetched_is_requested_again(refusal: FetchError, phase: str) -> None:
    stage = Stage(request(), store=Store(refusal))
    assert (await stage.reconcile()).requeue_after == reconciler.RETRY
    assert (stage.status()["phase"], reason(stage.status())) == (phase, refusal.reason)
    assert stage.announced.lines == [f"Warning {refusal.reason} Build: {refusal}"]
    assert stage.announced.events == (["failed"] if phase == "Failed" else [])
    stage.store.refusal = None
    await stage.reconcile()
    assert stage.status()["phase"] == "Building"


@pytest.mark.parametrize(
    ("refusal", "expected", "words"),
    [
        (
            NotFound(404, "NotFound", "namespaces"),
            "NoBuildNamespace",
            "the namespace of builds, dynamo-builds, does not exist",
        ),
        (
            NamespaceTerminating(403, "Forbidden", "terminated"),
            "NoBuildNamespace",
            "the namespace of builds, dynamo-builds, does not exist",
        ),
        (Forbidden(403, "Forbidden", "exceeded quota"), "RefusedByApiServer", "exceeded quota"),
        (WebhookUnavailable(500, "", "failed calling webhook"), "WebhookUnavailable", "failed calling webhook"),
    ],
)
async def test_an_error_that_prevents_a_job_is_reported(refusal: KubeError, expected: str, words: str) -> None:
    stage = Stage(request(), refusal=refusal)
    assert (await stage.reconcile()).requeue_after == reconciler.RETRY
    assert reason(stage.status()) == expected
    assert words in stage.status()["conditions"][0]["message"]


async def test_an_archive_is_read_once_however_long_its_build_waits() -> None:
    """The digest needs a download of gigabytes, and a quota may be used up for hours."""
    stage = Stage(request(), refusal=Forbidden(403, "Forbidden", "exceeded quota"))
    for _ in range(3):
        await stage.reconcile()
    assert stage.store.asked == 1
    stage.kube.refusals.clear()
    await stage.reconcile()
    assert (stage.status()["phase"], stage.store.asked) == ("Building", 1)
    stage.cache.remove(JOBS, JOB, objects.uid(await stage.kube.get(JOBS, JOB)))
    stage.kube.remove(JOBS, JOB)
    await stage.reconcile()
    assert stage.store.asked == 2, "what is built again is what the tag names then"


def other(name: str, of: str = "ns", **parts: Any) -> KubeObject:
    """A request for the image of another archive, in any namespace."""
    made = request(name, spec={"bentoTag": f"{name}:1"}, **parts)
    made["metadata"]["namespace"] = of
    return made


async def until_begun(stage: Stage, *names: str) -> None:
    for name in names:
        await stage.reconcile(name)


def phases(stage: Stage, *names: str) -> list[str]:
    return [stage.status(name)["phase"] for name in names]


LIMIT_OF_TWO = settings(buildsPerNamespace=2)


async def test_a_namespace_runs_a_limited_number_of_builds() -> None:
    """A tenant with thousands of archives took all nodes of the builds' namespace."""
    names = [f"r{number}" for number in range(4)]
    stage = Stage(*map(other, names), of=LIMIT_OF_TWO)
    await until_begun(stage, *names)
    assert phases(stage, *names) == ["Building", "Building", "Pending", "Pending"]
    status = stage.status("r2")
    assert (reason(status), held(status)) == ("Waiting", ["Progressing"])
    assert status["conditions"][0]["message"] == (
        "waiting: 2 builds run in this namespace, the limit is 2 (platform.imageBuilder.buildsPerNamespace)"
    )
    assert "job" not in status
    assert stage.announced.lines[2].startswith("Normal ImageWaiting Build: waiting: 2 builds run")
    # Another namespace has builds of its own.
    stage.put(other("elsewhere", "quiet"))
    await stage.reconcile("elsewhere", "quiet")
    assert len(stage.kube.stored(JOBS)) == 3


async def test_the_oldest_waiting_request_is_next() -> None:
    created = {"late": "2026-01-02T00:00:09Z", "early": "2026-01-02T00:00:01Z", "new": "2026-01-02T00:01:00Z"}
    stage = Stage(other("a"), other("b"), *(other(name, created=at) for name, at in created.items()), of=LIMIT_OF_TWO)
    await until_begun(stage, "a", "b", "late", "early")
    assert phases(stage, "late", "early") == ["Pending", "Pending"]
    assert list(queue.next_in_line(stage.cache, "ns", LIMIT_OF_TWO)) == []
    (first, _) = stage.kube.stored(JOBS)
    stage.put({**first, "status": {"conditions": [{"type": "Failed", "status": "True"}]}})
    assert list(queue.next_in_line(stage.cache, "ns", LIMIT_OF_TWO)) == [ObjectKey("ns", "early")]
    # A place is free, but neither a new nor a later request may take it.
    await until_begun(stage, "new", "late")
    assert phases(stage, "new", "late") == ["Pending", "Pending"]
    await until_begun(stage, "early")
    assert phases(stage, "early") == ["Building"]


async def test_a_waiting_request_shares_a_build_that_runs() -> None:
    stage = Stage(other("a"), other("b"), request(), of=LIMIT_OF_TWO)
    shared = job()
    shared["metadata"]["labels"][labels.IMAGE_NAMESPACE] = "elsewhere"
    stage.put(shared)
    await until_begun(stage, "a", "b", "one")
    assert phases(stage, "a", "b", "one") == ["Building", "Building", "Building"]


def slow_to_create(stage: Stage) -> None:
    """Let other reconciles begin while a Job is created."""
    create = stage.kube.create

    async def slow(resource: Resource, obj: KubeObject) -> KubeObject:
        await turns()
        return await create(resource, obj)

    stage.kube.create = slow  # type: ignore[method-assign, assignment]


async def test_builds_that_begin_at_the_same_time_keep_the_limit() -> None:
    names = [f"r{number}" for number in range(5)]
    stage = Stage(*map(other, names), of=LIMIT_OF_TWO)
    slow_to_create(stage)
    await asyncio.gather(*map(stage.reconcile, names))
    assert len(stage.kube.stored(JOBS)) == 2


async def test_requests_that_begin_one_build_at_the_same_time_share_it() -> None:
    """All but the first of them failed, and were retried."""
    names = ["r0", "r1"]
    stage = Stage(*map(request, names))
    for name in names:
        await stage.reconciler.reconcile(ObjectKey("ns", name))
    await stage.archives.read(await stage.reads.get())
    slow_to_create(stage)
    await asyncio.gather(*(stage.reconciler.reconcile(ObjectKey("ns", name)) for name in names))
    assert phases(stage, *names) == ["Building", "Building"]
    assert (stage.kube.writes, stage.reconciler._beginning) == ([CREATE], {})


async def test_only_the_oldest_requests_of_a_namespace_try_to_create_refused_jobs() -> None:
    """With a quota in the builds' namespace, thousands of requests asked the API server every half minute."""
    names = [f"r{number}" for number in range(4)]
    stage = Stage(*map(other, names), of=LIMIT_OF_TWO)
    asked: list[str] = []

    async def refuse(_: Resource, obj: KubeObject) -> KubeObject:
        asked.append(objects.name(obj))
        raise Forbidden(403, "Forbidden", "exceeded quota")

    create, stage.kube.create = stage.kube.create, refuse  # type: ignore[method-assign, assignment]
    await until_begun(stage, *names, *names)
    assert [reason(stage.status(name)) for name in names] == ["RefusedByApiServer"] * 2 + ["Waiting"] * 2
    assert stage.status("r3")["conditions"][0]["message"].startswith(
        "waiting: 0 builds run in this namespace, the limit is 2, and older requests are first ("
    )
    assert len(asked) == 4
    stage.kube.create = create  # type: ignore[method-assign]
    await until_begun(stage, *names)
    assert phases(stage, *names) == ["Building", "Building", "Pending", "Pending"]


async def test_a_foreign_job_is_left_alone() -> None:
    taken = job("Complete")
    taken["metadata"]["labels"] = {}
    stage = Stage(taken, BUILT, request())
    await stage.reconcile()
    assert reason(stage.status()) == "NameTaken"
    assert stage.kube.writes == []


async def test_without_a_registry_nothing_is_built_and_the_setting_is_named() -> None:
    stage = Stage(request(), of=settings(registry={"server": ""}))
    await stage.reconcile()
    assert reason(stage.status()) == "NoRegistry"
    assert "platform.imageBuilder.registry.server" in stage.status()["conditions"][0]["message"]
    assert stage.store.asked == 0


@pytest.mark.parametrize("spec", [{}, {"bentoTag": "no-version"}])
async def test_an_invalid_tag_is_reported(spec: KubeObject) -> None:
    stage = Stage(request(spec=spec))
    await stage.reconcile()
    assert reason(stage.status()) == "InvalidTag"


async def test_a_changed_tag_is_another_build() -> None:
    stage = Stage(job("Complete"), BUILT, request())
    await stage.reconcile()
    changed = request(spec={"bentoTag": "frontend:other"}, status=stage.status())
    changed["metadata"] |= {"generation": 2, "resourceVersion": "9"}
    stage.put(changed)
    stage.kube.list = no_pods  # type: ignore[method-assign]
    await stage.reconcile()
    assert (stage.status()["phase"], stage.status()["observedGeneration"]) == ("Building", 2)
    assert "imageRef" not in stage.status()


async def no_pods(*_: object, **__: object) -> KubeObjects:
    return []


async def test_a_request_that_is_being_deleted_builds_nothing() -> None:
    leaving = request()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:01Z"
    stage = Stage(leaving)
    await stage.reconcile()
    assert CREATE not in stage.kube.writes
