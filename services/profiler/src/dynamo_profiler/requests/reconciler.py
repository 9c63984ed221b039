"""DynamoGraphDeploymentRequest -> a profiled and, if requested, deployed graph (operator behaviour, section 7.2).

Each reconcile takes a request one step further, based on its status and on existing objects. After a stop at any
moment, at most the current step is repeated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from dynamo_shared.aio import Offload
from dynamo_shared.api import objects
from dynamo_shared.api.gpus import words as gpu_words
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.request_parts import in_request_fields, parts_of, spec_of
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    PERSISTENT_VOLUME_CLAIMS,
    ObjectKey,
    key_of,
)
from dynamo_shared.api.v1beta1.request import (
    DynamoGraphDeploymentRequestSpec,
    HardwareSpec,
    ProfilingPhase,
    RequestPhase,
)
from dynamo_shared.api.validation import Facts
from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import Forbidden, Invalid, MissingRight
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer, Fact
from dynamo_shared.runtime.large_objects import in_turn
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state.cache import ObjectCache

from dynamo_profiler import events
from dynamo_profiler.profiling.gpus import MEASURABLE
from dynamo_profiler.profiling.results import ProfilingFailed, ProfilingRequest, ProfilingResult
from dynamo_profiler.requests.deployment import GraphDeployer
from dynamo_profiler.requests.hardware import HardwareUnknown, planned_product
from dynamo_profiler.requests.hardware_discovery import HardwareFinder
from dynamo_profiler.requests.ownership import NameInUse
from dynamo_profiler.requests.results import results_status
from dynamo_profiler.requests.status import (
    OBJECTIVE_MET,
    PROFILING,
    RECONCILED,
    SPEC_GENERATED,
    VALIDATION,
    StatusDraft,
)
from dynamo_profiler.requests.thorough import ThoroughProfiling, names
from dynamo_profiler.requests.validation import problems
from dynamo_profiler.requests.work import Profilings

#: Removed if another operator added it: nothing needs to be done before a request is deleted.
FINALIZER = "nvidia.com/finalizer"
#: Interval between checks of a profiling Job's pod. Seconds.
POD_INTERVAL = 10.0
_AFTER_VALIDATION = frozenset(RequestPhase) - {RequestPhase.PENDING}
_CHANGE_REJECTED = "SpecChangeRejected"
_CHANGED = "the spec changed after profiling began, which has no effect: delete the request and create it again"
_NOT_MEASURABLE = (
    "spec.hardware.gpuSku: Dynamo's profiler, which searchStrategy thorough uses, does not support {sku}: choose "
    "nodes with one of {known}, or use searchStrategy rapid"
)


@dataclass(frozen=True, slots=True)
class RequestReconciler:
    """Takes one request one step further, and reports it."""

    kube: KubeClient
    cache: ObjectCache
    statuses: StatusWriter
    announcer: Announcer
    profilings: Profilings
    thorough: ThoroughProfiling
    deploying: GraphDeployer
    hardware: HardwareFinder
    facts: Callable[[], Facts]
    now: Callable[[], datetime]
    large: Offload

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile once. Raises KubeError if the API server does not answer: the queue retries."""
        obj = self.cache.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, key)
        if obj is None:
            return Result()
        if objects.is_deleting(obj):
            self.profilings.stop(obj["metadata"]["uid"])
            return await self._remove_finalizer(obj)
        draft = StatusDraft(obj, self.now())
        changed = draft.phase in _AFTER_VALIDATION and self._was_changed(obj, draft)
        if changed and _is_approved(obj, draft):
            name = draft.status["dgdName"]
            draft.observe().enter(RequestPhase.DEPLOYING, f"DynamoGraphDeployment {name} is starting")
            return await self._write(obj, draft)
        if changed:
            draft.say(VALIDATION, False, _CHANGE_REJECTED, _CHANGED)
            self.announcer.announce(obj, events.SPEC_CHANGE_REJECTED(_CHANGED))
            return await self._write(obj, draft)
        steps = {
            RequestPhase.PENDING: self._pending,
            RequestPhase.PROFILING: self._profiling,
            RequestPhase.READY: self._ready,
            RequestPhase.DEPLOYING: self._deploying,
            RequestPhase.DEPLOYED: self._deployed,
            RequestPhase.FAILED: self._failed,
        }
        try:
            return await steps[draft.phase](obj, draft)
        except MissingRight as error:
            # The request continues when a user has given the right.
            status, _ = reconcile_failed(obj, str(error), self.now())
            await self._write_status(obj, status)
            raise

    def _was_changed(self, obj: KubeObject, draft: StatusDraft) -> bool:
        """Whether the spec differs from the observed one, and the status does not report this yet."""
        generation = objects.generation(obj)
        reported = draft.condition(VALIDATION) or {}
        return generation not in (
            draft.status.get("observedGeneration", generation),
            reported.get("observedGeneration"),
        )

    async def _remove_finalizer(self, obj: KubeObject) -> Result:
        if (left := objects.without_finalizer(obj, FINALIZER)) is not None:
            patch = {"metadata": {"finalizers": left, "resourceVersion": obj["metadata"]["resourceVersion"]}}
            await self.kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, key_of(obj), patch)
        return Result()

    async def _pending(self, obj: KubeObject, draft: StatusDraft) -> Result:
        if draft.status.get("observedGeneration") != objects.generation(obj):
            return await self._validate(obj, draft)
        spec = spec_of(obj)
        if spec.search_strategy == "thorough":
            return await self._begin_thorough(obj, spec, draft)
        draft.at(ProfilingPhase.INITIALIZING, "profiling has started")
        return await self._write(obj, draft)

    async def _validate(self, obj: KubeObject, draft: StatusDraft) -> Result:
        draft.observe()
        errors = await in_turn(self.large, obj, partial(problems, obj, self.facts()))
        if errors:
            return await self._refuse(obj, draft, "; ".join(map(str, errors)))
        spec, namespace = spec_of(obj), obj["metadata"]["namespace"]
        if (claim := spec.model_cache and spec.model_cache.pvc_name) and not await self._has_claim(namespace, claim):
            message = f"spec.modelCache.pvcName: there is no PersistentVolumeClaim {claim} in namespace {namespace}"
            return await self._refuse(obj, draft, message)
        try:
            hardware = await self.hardware.find(spec.hardware, discover=parts_of(obj).discovers_gpus)
        except HardwareUnknown as unknown:
            return await self._refuse(obj, draft, str(unknown))
        if spec.search_strategy == "thorough" and (sku := hardware.planned.gpu_sku) not in MEASURABLE:
            return await self._refuse(obj, draft, _NOT_MEASURABLE.format(sku=sku, known=", ".join(MEASURABLE)))
        message = "the hardware for planning is known"
        draft.put(hardware=hardware.status.model_dump(mode="json", by_alias=True, exclude_none=True))
        draft.say(VALIDATION, True, "ValidationPassed", "the request can be profiled")
        draft.say(PROFILING, False, "DiscoveringHardware", message)
        self.announcer.announce(obj, events.INITIALIZED(message))
        return await self._write(obj, draft.enter(RequestPhase.PENDING, message))

    async def _refuse(self, obj: KubeObject, draft: StatusDraft, message: str) -> Result:
        self.announcer.announce(obj, events.VALIDATION_FAILED(in_request_fields(message, obj)))
        return await self._write(obj, draft.fail(VALIDATION, "ValidationFailed", message))

    async def _has_claim(self, namespace: str, name: str) -> bool:
        return await get_if_present(self.kube, PERSISTENT_VOLUME_CLAIMS, ObjectKey(namespace, name)) is not None

    async def _begin_thorough(
        self, obj: KubeObject, spec: DynamoGraphDeploymentRequestSpec, draft: StatusDraft
    ) -> Result:
        job = names.job(obj["metadata"]["name"])
        try:
            begun = await self.thorough.begin(obj, self._profiling_request(obj, spec, draft))
        except ProfilingFailed as failed:
            self.announcer.announce(obj, events.PROFILING_JOB_FAILED(in_request_fields(str(failed), obj)))
            return await self._write(obj, draft.fail_profiling(str(failed), failed.reason))
        except (Invalid, Forbidden) as error:
            self.announcer.announce(obj, events.PROFILING_JOB_FAILED(str(error)))
            if isinstance(error, MissingRight):
                raise
            return await self._write(obj, draft.fail(PROFILING, "JobCreationFailed", str(error)))
        if not begun:
            waits = f"Job {job} of an earlier request with this name is being deleted; this request's Job is created after that"
            await self._write(obj, draft.say(PROFILING, False, "NameTaken", waits).enter(RequestPhase.PENDING, waits))
            return Result(POD_INTERVAL)
        self.announcer.announce(obj, events.PROFILING_JOB_CREATED(f"Created Job {job}"))
        draft.put(profilingJobName=job).at(ProfilingPhase.INITIALIZING, f"Job {job} is profiling on the cluster")
        return await self._write(obj, draft)

    async def _profiling(self, obj: KubeObject, draft: StatusDraft) -> Result:
        spec = spec_of(obj)
        uid = obj["metadata"]["uid"]
        if spec.search_strategy == "thorough":
            step, outcome = await self.thorough.follow(obj, self._profiling_request(obj, spec, draft))
        else:
            self.profilings.ensure(uid, key_of(obj), partial(self._asked, key_of(obj)))
            step, outcome = self.profilings.step(uid), self.profilings.outcome(uid)
        if outcome is None:
            if step is not None:
                draft.at(*step)
            result = await self._write(obj, draft, urgent=False)
            # Only the pod shows why it does not start; no event reports it.
            is_polled = spec.search_strategy == "thorough" and result.requeue_after is None
            return Result(POD_INTERVAL) if is_polled else result
        if isinstance(outcome, ProfilingFailed):
            if step is not None:
                draft.put(profilingPhase=step[0].value)
            self.announcer.announce(obj, events.PROFILING_FAILED(in_request_fields(str(outcome), obj)))
            result = await self._write(obj, draft.fail_profiling(str(outcome), outcome.reason))
        else:
            result = await self._selected(obj, spec, draft, outcome)
        self.profilings.stop(uid)
        return result

    def _asked(self, key: ObjectKey) -> ProfilingRequest:
        """The request to profile. Work for a deleted request has already ended."""
        obj = self.cache.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, key)
        assert obj is not None
        return self._profiling_request(obj, spec_of(obj), StatusDraft(obj, self.now()))

    def _profiling_request(
        self, obj: KubeObject, spec: DynamoGraphDeploymentRequestSpec, draft: StatusDraft
    ) -> ProfilingRequest:
        planned = (draft.status.get("hardware") or {}).get("planned")
        hardware = HardwareSpec.model_validate(planned) if planned else spec.hardware
        metadata = obj["metadata"]
        return ProfilingRequest(
            name=metadata["name"],
            namespace=metadata["namespace"],
            spec=spec.model_copy(update={"hardware": hardware}),
            gpu_product=planned_product(draft.status.get("hardware") or {}),
            workers_image=parts_of(obj).workers_image,
        )

    async def _selected(
        self, obj: KubeObject, spec: DynamoGraphDeploymentRequestSpec, draft: StatusDraft, result: ProfilingResult
    ) -> Result:
        name = result.selected.dgd["metadata"]["name"]
        if result.selected.config_maps and await self.deploying.is_taken(obj, name):
            self.deploying.reject_taken(obj, draft.put(profilingPhase=None), name)
            return await self._write(obj, draft)
        try:
            await self.deploying.provide(obj, name, result.selected.config_maps)
        except (Invalid, Forbidden, NameInUse) as error:
            self.announcer.announce(obj, events.CONFIG_MAPS_FAILED(str(error)))
            if isinstance(error, MissingRight):
                # The result stays until the right is given.
                raise
            return await self._write(
                obj, draft.put(profilingPhase=None).fail(SPEC_GENERATED, "GenerationFailed", str(error))
            )
        message = f"DynamoGraphDeployment {name}: {_summary(result)}"
        phase, sum_up = RequestPhase.READY, f"{message}; spec.autoApply is false, so apply the graph yourself"
        if spec.auto_apply:
            phase, sum_up = RequestPhase.DEPLOYING, f"DynamoGraphDeployment {name} is starting"
        draft.at(ProfilingPhase.DONE, sum_up).say(PROFILING, True, "ProfilingCompleted", message)
        draft.say(SPEC_GENERATED, True, "SpecGenerated", message)
        results = await in_turn(self.large, obj, partial(results_status, obj, result))
        draft.put(dgdName=name, profilingResults=results)
        for remark in result.remarks:
            draft.say(remark.reason, True, remark.reason, remark.message)
        draft.say(OBJECTIVE_MET, *_objective(result, message))
        try:
            # The phase is still profiling: the result is reported after the API server has it. Another phase needs no
            # more space.
            await self.statuses.write(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, obj, draft.done(), urgent=True)
        except Invalid as error:
            # Large overrides are both in the spec and in the result, and an object may lack space for both.
            why = f"the result cannot be written into the status: {error}; make spec.overrides smaller in a new request"
            self.announcer.announce(obj, events.PROFILING_FAILED(in_request_fields(why, obj)))
            return await self._write(obj, StatusDraft(obj, self.now()).fail(SPEC_GENERATED, "GenerationFailed", why))
        written = self.cache.get_by_uid(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, key_of(obj), objects.uid(obj))
        if written is None:
            return Result()
        for remark in result.remarks:
            self.announcer.announce(obj, events.REMARK.named(remark.reason)(in_request_fields(remark.message, obj)))
        self.announcer.announce(obj, events.SPEC_GENERATED(message))
        return await self._write(written, StatusDraft(written, self.now()).enter(phase, sum_up))

    async def _ready(self, obj: KubeObject, draft: StatusDraft) -> Result:
        await self.deploying.share(obj, draft)
        return await self._write(obj, draft) if draft.recovers else Result()

    async def _deploying(self, obj: KubeObject, draft: StatusDraft) -> Result:
        if not spec_of(obj).auto_apply:
            return await self._write(obj, draft.enter(RequestPhase.READY, "spec.autoApply is false"))
        await self.deploying.advance(obj, draft)
        return await self._write(obj, draft)

    async def _deployed(self, obj: KubeObject, draft: StatusDraft) -> Result:
        await self.deploying.follow(obj, draft)
        return await self._write(obj, draft)

    async def _failed(self, obj: KubeObject, draft: StatusDraft) -> Result:
        """Do nothing, except follow a graph that a user created from the result since the failure."""
        resumed = await self.deploying.resume(obj, draft)
        return await self._write(obj, draft) if resumed or draft.recovers else Result()

    async def _write(self, obj: KubeObject, draft: StatusDraft, *, urgent: bool = True) -> Result:
        return await self._write_status(obj, draft.done(), urgent=urgent)

    async def _write_status(self, obj: KubeObject, status: KubeObject, *, urgent: bool = True) -> Result:
        wait = await self.statuses.write(
            DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
            obj,
            status,
            urgent=urgent,
            report=lambda: self.announcer.announce(obj, events.request_changed(obj, status)),
        )
        return Result(wait)


def reconcile_failed(obj: KubeObject, message: str, now: datetime) -> tuple[KubeObject, Fact]:
    """The status of a request whose reconcile raised an error, and the event."""
    draft = StatusDraft(obj, now)
    draft.put(phase=draft.phase.value).say(RECONCILED, False, events.RECONCILE_FAILED.name, message)
    status = draft.done()
    return status, events.reconcile_failed(obj, status, message)


def _is_approved(obj: KubeObject, draft: StatusDraft) -> bool:
    """Whether a change to a request with a waiting result deploys the result: it enabled `autoApply`, like Dynamo 1.5.

    Not after a rejected change: the result was computed for another spec. Earlier releases, and the operator up to 1.4,
    also rejected this change, and an upgrade must not use GPUs for an abandoned request.
    """
    waits = draft.phase is RequestPhase.READY and bool(draft.status.get("dgdName"))
    rejected = (draft.condition(VALIDATION) or {}).get("reason") == _CHANGE_REJECTED
    return waits and not rejected and (obj.get("spec") or {}).get("autoApply") is not False


def _objective(result: ProfilingResult, message: str) -> tuple[bool | None, str, str]:
    """Whether the latencies are kept: status, reason and message of the condition."""
    why = "; ".join(remark.message for remark in result.remarks) or message
    if result.selected.figures.meets_sla is None:
        return None, "NotEstimated", why
    return (True, "ObjectiveMet", message) if result.selected.figures.meets_sla else (False, "ObjectiveNotMet", why)


def _summary(result: ProfilingResult) -> str:
    best = result.selected.figures
    known = (
        (f"{gpu_words(best.gpus or 0)}, {best.backend} {best.serving}", True),
        (f"{best.tokens_per_second_per_gpu or 0:.1f} tokens/s/GPU", best.tokens_per_second_per_gpu is not None),
        (f"TTFT {best.ttft or 0:.1f} ms", best.ttft is not None),
        (f"ITL {best.itl or 0:.2f} ms", best.itl is not None),
    )
    return ", ".join(text for text, is_known in known if is_known)
