"""Thorough profiling: the reference's Job measures engines on the cluster, and writes its result to a ConfigMap."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeAlias

import structlog
from dynamo_shared.aio import Offload
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    JOBS,
    ObjectKey,
)
from dynamo_shared.api.untrusted.words import quoted
from dynamo_shared.api.v1beta1.request import ProfilingPhase
from dynamo_shared.kube import KubeClient, create_or_get, first_pods, get_if_present
from dynamo_shared.kube.errors import NotFound, ResponseTooLarge
from dynamo_shared.kube.events import warnings_about
from dynamo_shared.runtime.settings.operator import Infrastructure
from dynamo_shared.state.cache import ObjectCache

from dynamo_profiler.profiling.results import ProfilingFailed, ProfilingRequest, ProfilingResult
from dynamo_profiler.requests.ownership import NameInUse, is_managed, write
from dynamo_profiler.requests.thorough import access, names
from dynamo_profiler.requests.thorough.job import profiling_job
from dynamo_profiler.requests.thorough.outcome import end_of, failure, step_of

log = structlog.get_logger("dynamo.planner.profiling")

ProfilingProgress: TypeAlias = tuple[tuple[ProfilingPhase, str] | None, ProfilingResult | ProfilingFailed | None]
"""Progress of profiling, and its result when it is known."""

Reader: TypeAlias = Callable[[ProfilingRequest, Mapping[str, str]], ProfilingResult]
"""Parses the data of an output ConfigMap. Raises ProfilingFailed if it is not a result."""


RequireCandidates: TypeAlias = Callable[[ProfilingRequest], None]
"""Raises ProfilingFailed if there is no engine to measure. May read files."""


@dataclass(frozen=True, slots=True)
class MeasuringBudget:
    """Limits of measuring: seconds, and GPU hours (0: unlimited)."""

    seconds: float
    gpu_hours: float

    def deadline(self, gpus: int) -> int:
        """Time limit in seconds for a request that may use `gpus` GPUs at once."""
        by_gpus = self.gpu_hours * 3600 / max(gpus, 1) if self.gpu_hours > 0 else self.seconds
        return max(1, int(min(self.seconds, by_gpus)))


@dataclass(frozen=True, slots=True)
class ThoroughProfiling:
    """Starts and follows Jobs."""

    kube: KubeClient
    cache: ObjectCache
    read: Reader
    image: Callable[[ProfilingRequest], str]
    budget: MeasuringBudget
    cluster_role: str
    infrastructure: Infrastructure
    require_candidates: RequireCandidates
    now: Callable[[], datetime]
    large: Offload

    async def begin(self, obj: KubeObject, request: ProfilingRequest) -> bool:
        """Create the Job. Returns False while the Job of an earlier request of the name is being deleted.

        Removes the output of such a request.

        Raises KubeError if the API server refuses, ProfilingFailed if nothing would be measured, or the name is in use.
        """
        await asyncio.to_thread(self.require_candidates, request)
        await self._remove_output(obj, request)
        for child in access.objects(request.namespace, self.cluster_role):
            try:
                await write(self.kube, child, is_managed)
            except NameInUse as error:
                raise ProfilingFailed("NameTaken", str(error)) from None
        gpus = (request.spec.hardware and request.spec.hardware.total_gpus) or 1
        deadline = self.budget.deadline(gpus)
        desired = profiling_job(obj, request, self.infrastructure, image=self.image(request), deadline=deadline)
        job = await create_or_get(self.kube, JOBS, desired)
        if _is_of(job, obj):
            return True
        if _will_be_deleted(job, request):
            return False
        raise ProfilingFailed(
            "NameTaken",
            f"Job {names.job(request.name)} exists, and was not created for this request: delete the Job, and create the "
            "request again",
        )

    async def follow(self, obj: KubeObject, request: ProfilingRequest) -> ProfilingProgress:
        """The progress of a Job. The profiler's output counts, however the Job ended, and also if the Job no longer
        exists.
        """
        name = names.job(request.name)
        job = await self._job(obj, request)
        ended = end_of(job, self.now()) if job is not None else None
        key = ObjectKey(request.namespace, names.output(request.name))
        output = _of(obj, self.cache.get(CONFIG_MAPS, key))
        if (job is None or ended is not None) and _data(output).get(names.STATUS) not in names.LAST:
            # The output was written before the Job ended, but may not have arrived in the cache yet.
            output = _of(obj, await get_if_present(self.kube, CONFIG_MAPS, key))
        data = _data(output)
        if data.get(names.STATUS) == names.SUCCESS and data.get(names.FINAL_CONFIG):
            return None, await self._result(request, data)
        asks = ended is not None or output is None
        selector = f"{labels.PROFILER_REQUEST}={request.name}"
        pods = await first_pods(self.kube, request.namespace, selector) if asks else []
        failed = failure(output, ended, pods)
        if failed is not None:
            return step_of(output, pods), failed
        if job is None:
            return None, ProfilingFailed("JobDeleted", f"Job {name} was deleted: create the request again")
        if ended is not None:
            lacking = (
                f"Job {name} ended without a result: ConfigMap {names.output(request.name)} has no {names.FINAL_CONFIG}"
            )
            return None, ProfilingFailed("OutputMissing", lacking)
        # Only Events, which are not watched, show why there is no pod.
        unknown = await self._events(job) if output is None and not pods else ()
        suspended = bool((job.get("spec") or {}).get("suspend"))
        return step_of(output, pods, unknown, suspended=suspended), None

    async def _result(self, request: ProfilingRequest, data: Mapping[str, str]) -> ProfilingResult | ProfilingFailed:
        try:
            # Takes seconds if the output is as large as a ConfigMap can be, and anyone may write hundreds of them.
            size = sum(map(len, data.values()))
            return await self.large.run(size, partial(self.read, request, data), request.namespace)
        except ProfilingFailed as unreadable:
            return unreadable
        except Exception as error:
            # The output may have any content, and reading it again would give the same error.
            log.exception("cannot read the output of a profiling Job", request=request.name)
            return ProfilingFailed(
                "GenerationFailed", f"the profiling Job's output cannot be read: {quoted(repr(error))}"
            )

    async def _job(self, obj: KubeObject, request: ProfilingRequest) -> KubeObject | None:
        """The request's Job. The cache may be late, and have the Job of an earlier request of the name."""
        key = ObjectKey(request.namespace, names.job(request.name))
        return _of(obj, self.cache.get(JOBS, key)) or _of(obj, await get_if_present(self.kube, JOBS, key))

    async def _events(self, job: KubeObject) -> list[KubeObject]:
        try:
            return await warnings_about(self.kube, objects.namespace(job), f"regarding.uid={objects.uid(job)}")
        except ResponseTooLarge:
            # The message then has only what the Job's status says.
            return []

    async def _remove_output(self, obj: KubeObject, request: ProfilingRequest) -> None:
        key = ObjectKey(request.namespace, names.output(request.name))
        try:
            config_map = await self.kube.get(CONFIG_MAPS, key)
            if _is_of(config_map, obj):
                return
            if keys.REQUEST_UID not in objects.annotations(config_map):
                raise ProfilingFailed("NameTaken", str(NameInUse(CONFIG_MAPS, key.name)))
            await self.kube.delete(CONFIG_MAPS, key, uid=config_map["metadata"]["uid"])
        except NotFound:
            pass


def _of(obj: KubeObject, child: KubeObject | None) -> KubeObject | None:
    """The child if it belongs to this request."""
    return child if child is not None and _is_of(child, obj) else None


def _data(output: KubeObject | None) -> Mapping[str, str]:
    return (output or {}).get("data") or {}


def _will_be_deleted(job: KubeObject, request: ProfilingRequest) -> bool:
    """Whether Kubernetes deletes a Job: with its owner, an earlier request, or on its own."""
    owner = objects.controller_of(job) or {}
    return objects.is_deleting(job) or (owner.get("kind"), owner.get("name")) == (
        DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.kind,
        request.name,
    )


def _is_of(child: KubeObject, obj: KubeObject) -> bool:
    """Whether an object belongs to this very request: by its owner, or by the label with the uid."""
    uid, metadata = obj["metadata"]["uid"], child["metadata"]
    owners = metadata.get("ownerReferences") or ()
    return any(each["uid"] == uid for each in owners) or (objects.annotations(child).get(keys.REQUEST_UID) == uid)
