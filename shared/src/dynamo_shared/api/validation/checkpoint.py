"""DynamoCheckpoint: its identity is immutable, and it contains no memory that is outside the engine."""

from typing import Any

from dynamo_shared.api.untrusted.reading import below, mapping
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import CHECKPOINT, UPDATED, RuleSet, Violations, broken
from dynamo_shared.api.validation.unused import METADATA_OF_PODS

CHECKPOINTS = RuleSet("Checkpoints", (CHECKPOINT,))
UNUSED_IN_CHECKPOINTS = RuleSet("Checkpoints", (CHECKPOINT,))
CHANGES_OF_CHECKPOINTS = RuleSet("Checkpoints", (CHECKPOINT,), UPDATED)


@CHECKPOINTS.rule("cannot be enabled, because a checkpoint does not contain its memory: leave it out")
def checkpoint_holds_no_shared_gpu_memory(spec: dict[str, Any], facts: Facts) -> Violations:
    """Engines with a GPU memory service cannot have a checkpoint, unless the platform is configured to allow it."""
    if below(spec, ("gpuMemoryService", "enabled")) is True and not facts.gms_snapshot:
        yield broken(("spec", "gpuMemoryService"))


_ONCE = "has no effect: the Job runs once; to repeat it, recreate the DynamoCheckpoint"
_KEPT = "has no effect: the Job is kept for 300 seconds after its end"
_NOT_STARTED_AGAIN = "has no effect: the Job never restarts its pod"
_NOT_OF_THE_POD = "has no effect: the pod gets only labels and annotations from the metadata of its template"


@UNUSED_IN_CHECKPOINTS.rule(_ONCE, _KEPT, _NOT_STARTED_AGAIN, _NOT_OF_THE_POD, added=True)
def the_job_is_the_platforms(spec: dict[str, Any], _facts: Facts) -> Violations:
    """The platform fixes the retries, the TTL and the pod metadata of a checkpoint's Job."""
    job = mapping(spec.get("job"))
    template, at = mapping(job.get("podTemplateSpec")), ("spec", "job", "podTemplateSpec")
    for name, value in mapping(template.get("metadata")).items():
        if name not in METADATA_OF_PODS and value:
            yield (*at, "metadata", str(name)), _NOT_OF_THE_POD
    if below(template, ("spec", "restartPolicy")) not in (None, "", "Never"):
        yield (*at, "spec", "restartPolicy"), _NOT_STARTED_AGAIN
    if job.get("backoffLimit"):
        yield ("spec", "job", "backoffLimit"), _ONCE
    if job.get("ttlSecondsAfterFinished") not in (None, 300):
        yield ("spec", "job", "ttlSecondsAfterFinished"), _KEPT


@CHANGES_OF_CHECKPOINTS.rule(
    "cannot be changed, because components find the checkpoint by it: create another DynamoCheckpoint"
)
def identity_stays(spec: dict[str, Any], old: dict[str, Any], _facts: Facts) -> Violations:
    """The identity of a checkpoint cannot change."""
    now, before = spec.get("identity"), old.get("identity")
    if isinstance(now, dict) and isinstance(before, dict):
        for name in (*before, *(each for each in now if each not in before)):
            if now.get(name, _DEFAULTS.get(name)) != before.get(name, _DEFAULTS.get(name)):
                yield broken(("spec", "identity", str(name)))


_DEFAULTS = {"tensorParallelSize": 1, "pipelineParallelSize": 1}
