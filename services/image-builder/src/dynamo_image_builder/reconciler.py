"""DynamoNimRequest -> a build Job, shared by all requests for the same archive, and the status of the request.

1. A request with an answer stays unchanged until its spec changes.
2. A request with a running build follows the build's Job.
3. For any other request, the digest of its archive is determined once. Then either the image already exists, or the
   request joins or creates the build's Job, or it waits for other builds of its namespace.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from dynamo_shared.api import objects
from dynamo_shared.api.legacy import BuildPhase
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, JOBS, PODS, ObjectKey
from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    NotFound,
    WebhookUnavailable,
)
from dynamo_shared.lru import LruCache
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.settings.image_builder import ImageBuilder
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state import ObjectCache

from dynamo_image_builder import events, queue
from dynamo_image_builder.archives import Archives
from dynamo_image_builder.builds import Build, InvalidTag, parse_tag, target_of
from dynamo_image_builder.fetch import FetchError
from dynamo_image_builder.job import build_job
from dynamo_image_builder.metrics import BuildMetrics
from dynamo_image_builder.outcome import ObservedBuild, age, digest_of, observe
from dynamo_image_builder.status import (
    BY_JOB,
    NO_NAMESPACE,
    NO_WEBHOOK,
    REFUSED,
    WAITING,
    BuildProgress,
    build_under_way,
    is_settled,
    job_of,
    known_digest,
    reason_of,
    state_of,
    status_of,
)

#: A build's pods are not in STATE, so the service lists them: first at this interval, then after a tenth of the time that the
#: build has taken, up to the second interval. The end of a build comes with its Job. Seconds.
FOLLOW, FOLLOW_LATEST = 10.0, 60.0
#: Jobs whose pods are remembered.
LISTED = 64
#: Interval of retries: an obstacle of a build may pass without an event. Seconds.
RETRY = 30.0
#: Interval of checks for a Job that is being deleted. Seconds.
REPLACE = 1.0
_NO_REGISTRY = BuildProgress(
    BuildPhase.FAILED,
    "NoRegistry",
    "no registry is configured: set platform.imageBuilder.registry.server in the operator configuration",
)


def index(cache: ObjectCache) -> None:
    """Index requests by their build's Job."""
    queue.index(cache)
    cache.add_index(DYNAMO_NIM_REQUESTS, BY_JOB, lambda each: (str(key),) if (key := job_of(each)) else ())


@dataclass(slots=True)
class NimRequestReconciler:
    """Builds the image of one request, and reports in its status."""

    kube: KubeClient
    cache: ObjectCache
    archives: Archives
    statuses: StatusWriter
    announcer: Announcer
    metrics: BuildMetrics
    settings: ImageBuilder
    now: Callable[[], datetime]

    #: By version of a Job: its pods, for all requests that follow it.
    _listed: LruCache[tuple[str, str], tuple[datetime, list[KubeObject]]] = field(
        init=False, default_factory=lambda: LruCache(LISTED)
    )
    #: By namespace: Jobs that are being created.
    _beginning: dict[str, frozenset[ObjectKey]] = field(init=False, default_factory=dict)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one request. Raises KubeError if the API server does not answer: the queue retries."""
        request = self.cache.get(DYNAMO_NIM_REQUESTS, key)
        if request is None or objects.is_deleting(request) or is_settled(request):
            return Result()
        settings = self.settings
        try:
            tag = parse_tag(str((request.get("spec") or {}).get("bentoTag", "")))
        except InvalidTag as error:
            return await self._report(request, BuildProgress(BuildPhase.FAILED, "InvalidTag", str(error)))
        if not settings.registry.server:
            return await self._report(request, _NO_REGISTRY)
        target = target_of(tag, key.namespace, settings)
        build = build_under_way(request, tag, target, estargz=settings.estargz, namespace=settings.namespace)
        if build is not None and (job := await self._job(build)) is not None:
            return await self._follow(request, build, job, began=True)
        try:
            archive = self.archives.of(request, tag)
        except FetchError as error:
            phase = BuildPhase.PENDING if error.temporary else BuildPhase.FAILED
            return await self._report(request, BuildProgress(phase, error.reason, error.message), RETRY)
        if archive is None:
            return Result()
        return await self._begin(request, Build(tag, archive.digest, target, settings.estargz))

    async def _begin(self, request: KubeObject, build: Build) -> Result:
        same = self.cache.by_index(DYNAMO_NIM_REQUESTS, BY_JOB, f"{self.settings.namespace}/{build.job}")
        # A user who may write a status decides about images only in that namespace.
        if digest := known_digest([each for each in same if objects.namespace(each) == objects.namespace(request)]):
            return await self._cached(request, build, ObservedBuild(True, "Built", _cached_message(digest), digest))
        namespace = objects.namespace(request)
        running = len(queue.running(self.cache, namespace) | self._beginning.get(namespace, frozenset()))
        if not self._may_begin(request, build, running):
            return await self._report(request, _waiting_for(running, self.settings.builds_per_namespace))
        try:
            job = await self._create(build, namespace)
        except AlreadyExists:
            stored = await self._stored(build)
            return Result(REPLACE) if stored is None else await self._follow(request, build, stored, began=False)
        except (NotFound, NamespaceTerminating):
            message = (
                f"the namespace of builds, {self.settings.namespace}, does not exist: create it; rootless builds need Pod "
                "Security privileged"
            )
            return await self._report(request, BuildProgress(BuildPhase.FAILED, NO_NAMESPACE, message), RETRY)
        except (Invalid, Forbidden) as error:
            message = (
                f"the API server refuses the build's Job: {error}; correct platform.imageBuilder, the rights of the "
                "image-builder, or the quota"
            )
            return await self._report(request, BuildProgress(BuildPhase.FAILED, REFUSED, message), RETRY)
        except WebhookUnavailable as error:
            message = f"the build's Job cannot be created: {error}; repair the webhook that the message names"
            return await self._report(request, BuildProgress(BuildPhase.PENDING, NO_WEBHOOK, message), RETRY)
        return await self._follow(request, build, job, began=True)

    def _may_begin(self, request: KubeObject, build: Build, running: int) -> bool:
        """Whether the request's namespace may run one more build, and it is this request's turn. A build that another
        request began is shared.
        """
        limit = self.settings.builds_per_namespace
        if self.cache.get(JOBS, ObjectKey(self.settings.namespace, build.job)) is not None:
            return True
        return running < limit and running + queue.ahead(self.cache, request) < limit

    async def _create(self, build: Build, namespace: str) -> KubeObject:
        """Create the Job of a build; until it is in the cache, it counts as running."""
        key = ObjectKey(self.settings.namespace, build.job)
        self._beginning[namespace] = self._beginning.get(namespace, frozenset()) | {key}
        try:
            job = await self.kube.create(JOBS, build_job(build, namespace, self.settings))
            self.cache.put(JOBS, job)
        finally:
            # Requests for one build may create its Job at the same time: the first of them removed it here.
            if left := self._beginning.pop(namespace, frozenset()) - {key}:
                self._beginning[namespace] = left
        return job

    async def _follow(self, request: KubeObject, build: Build, job: KubeObject, *, began: bool) -> Result:
        """`began`: the request waited for this build, or began it; a build that had ended before answers it at once."""
        if objects.is_deleting(job):
            return Result(REPLACE)
        if objects.labels(job).get(labels.IMAGE_BUILD) != build.id:
            name, namespace = objects.name(job), objects.namespace(job)
            message = f"Job {name} in namespace {namespace} is not managed by this platform: delete it"
            return await self._report(request, BuildProgress(BuildPhase.FAILED, "NameTaken", message), RETRY)
        observed = observe(job, await self._pods(job), self.now())
        if observed.done is None:
            again = min(FOLLOW_LATEST, max(FOLLOW, age(job, self.now()) / 10))
            return await self._report(request, state_of(observed), again, build=build, observed=observed)
        if observed.done:
            await self._note(job, observed.digest)
            if not began:
                return await self._cached(request, build, observed)
            return await self._report(request, state_of(observed), build=build, observed=observed, cached=False)
        if observed.reason == "ResultLost" or (not began and objects.created_at(request) > observed.ended_at):
            return await self._replace(job)
        return await self._report(request, state_of(observed), build=build, observed=observed, cached=False)

    async def _cached(self, request: KubeObject, build: Build, observed: ObservedBuild) -> Result:
        state = BuildProgress(BuildPhase.READY, "Built", _cached_message(observed.digest))
        return await self._report(request, state, build=build, observed=observed, cached=True)

    async def _replace(self, job: KubeObject) -> Result:
        """Repeat a build that failed before the request was created, or whose result is lost."""
        with suppress(NotFound, Conflict):
            await self.kube.delete(JOBS, ObjectKey(objects.namespace(job), objects.name(job)), uid=objects.uid(job))
        return Result(REPLACE)

    async def _note(self, job: KubeObject, digest: str) -> None:
        """Write the digest on the Job: its pod may be deleted before the Job."""
        if digest_of(job) == digest:
            return
        key = ObjectKey(objects.namespace(job), objects.name(job))
        patch = {"metadata": {"uid": objects.uid(job), "annotations": {keys.IMAGE_DIGEST: digest}}}
        self.cache.put(JOBS, await self.kube.merge_patch(JOBS, key, patch))

    async def _job(self, build: Build) -> KubeObject | None:
        """The Job in STATE; its message may arrive after the message of the status that names it."""
        key = ObjectKey(self.settings.namespace, build.job)
        return self.cache.get(JOBS, key) or await self._stored(build)

    async def _stored(self, build: Build) -> KubeObject | None:
        return await get_if_present(self.kube, JOBS, ObjectKey(self.settings.namespace, build.job))

    async def _pods(self, job: KubeObject) -> list[KubeObject]:
        version, now = (objects.uid(job), job["metadata"].get("resourceVersion")), self.now()
        at, pods = self._listed.get(version, (None, []))
        if at is None or abs((now - at).total_seconds()) >= FOLLOW / 2:
            selector = f"{labels.JOB_NAME}={objects.name(job)}"
            listed = await self.kube.list(PODS, objects.namespace(job), label_selector=selector)
            pods = sorted(listed, key=objects.created_at, reverse=True)
            self._listed[version] = now, pods
        return pods

    async def _report(
        self,
        request: KubeObject,
        state: BuildProgress,
        again: float | None = None,
        *,
        build: Build | None = None,
        observed: ObservedBuild | None = None,
        cached: bool | None = None,
    ) -> Result:
        status = status_of(
            request,
            state,
            self.now(),
            build=build,
            observed=observed,
            namespace=self.settings.namespace,
            cached=cached,
        )
        before = request.get("status") or {}
        if state.phase in (BuildPhase.BUILDING, BuildPhase.READY):
            self.archives.forget(request)

        def report() -> None:
            if (
                reason_of(status) != reason_of(before)
                or before.get("observedGeneration") != status["observedGeneration"]
            ):
                self.announcer.announce(request, events.changed(request, status, state))
                if state.phase is BuildPhase.READY:
                    self.metrics.answers.labels(objects.namespace(request), "cached" if cached else "built").inc()
                elif state.phase is BuildPhase.FAILED:
                    self.metrics.answers.labels(objects.namespace(request), "failed").inc()

        wait = await self.statuses.write(DYNAMO_NIM_REQUESTS, request, status, urgent=True, report=report)
        return Result(requeue_after=again if wait is None else wait)


def _waiting_for(running: int, limit: int) -> BuildProgress:
    builds = "1 build runs" if running == 1 else f"{running} builds run"
    others = ", and older requests are first" if running < limit else ""
    message = (
        f"waiting: {builds} in this namespace, the limit is {limit}{others} (platform.imageBuilder.buildsPerNamespace)"
    )
    return BuildProgress(BuildPhase.PENDING, WAITING, message)


def _cached_message(digest: str) -> str:
    return f"the registry already had the image of this archive as {digest}: nothing was built"
