"""Validates a request again: admission checks much of this at creation, but a request may have bypassed admission."""

from collections.abc import Iterator, Sequence

from dynamo_shared.api.embedded.rules.names import wrong_object_name
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.reading import items
from dynamo_shared.api.validation import Facts, validate

_JOB = "spec.overrides.profilingJob"
#: Number fields of a Job, and their minimum.
_WHOLE = {
    "backoffLimit": 0,
    "activeDeadlineSeconds": 1,
    "ttlSecondsAfterFinished": 0,
    "completions": 1,
    "parallelism": 0,
}


def problems(obj: KubeObject, facts: Facts) -> list[FieldError]:
    """Errors, with paths, that prevent profiling of a request; empty if there are none."""
    errors = [*schema_errors(obj), *validate(obj, None, facts).errors]
    # Errors of the schema say more than errors about numbers of the wrong type.
    return errors or [*_values(obj.get("spec") or {}), *_job(obj.get("spec") or {})]


def _values(spec: KubeObject) -> Iterator[FieldError]:
    cache = spec.get("modelCache") or {}
    mount = cache.get("pvcMountPath")
    if mount is not None and (not mount.startswith("/") or ":" in mount):
        yield FieldError("spec.modelCache.pvcMountPath", f"{mount!r} is not an absolute path without colons")
    if cache.get("pvcModelPath") and not cache.get("pvcName"):
        yield FieldError("spec.modelCache.pvcName", "required with pvcModelPath: name the claim that has the model")
    if wrong := wrong_object_name(cache.get("pvcName") or ""):
        yield FieldError("spec.modelCache.pvcName", wrong)
    if not str(spec.get("model", "")).strip():
        yield FieldError("spec.model", "is blank; set the name or the path of a model")


def _job(spec: KubeObject) -> Iterator[FieldError]:
    """Checks the parts of `overrides.profilingJob` that are merged one by one. The API server checks the rest."""
    job = (spec.get("overrides") or {}).get("profilingJob") or {}
    for name, least in _WHOLE.items():
        value = job.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            yield FieldError(f"{_JOB}.{name}", f"{value!r} is not a whole number of at least {least}")
    template = job.get("template") or {}
    pod = template.get("spec") or {} if isinstance(template, dict) else None
    if not isinstance(pod, dict):
        yield FieldError(f"{_JOB}.template", "is not a pod template")
        return
    yield from _shapes(template.get("metadata"), f"{_JOB}.template.metadata", (), ("labels", "annotations"))
    at = f"{_JOB}.template.spec"
    lists = ("containers", "initContainers", "volumes", "imagePullSecrets", "tolerations")
    yield from _shapes(pod, at, lists, ("securityContext",))
    for place, each in enumerate(items(pod.get("containers"))):
        if isinstance(each, dict):
            yield from _shapes(each, f"{at}.containers[{place}]", ("env", "envFrom", "volumeMounts"), ("resources",))


def _shapes(value: object, at: str, lists: Sequence[str], objects: Sequence[str]) -> Iterator[FieldError]:
    if value is not None and not isinstance(value, dict):
        yield FieldError(at, "must be an object")
        return
    given = value or {}
    for name in lists:
        part = given.get(name)
        if part is not None and not (isinstance(part, list) and all(map(_is_entry, part))):
            yield FieldError(f"{at}.{name}", "must be a list of objects with strings as names")
    for name in objects:
        part = given.get(name)
        if part is not None and not isinstance(part, dict):
            yield FieldError(f"{at}.{name}", "must be an object")


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name", ""), str | None)
