"""The pure core: request and facts in, answer out. No I/O, no clock.

The first webhook reports every error of an object, including schema errors, because afterwards the API server checks
the schema itself and would report only those. The second webhook repeats the check on the object to be stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from dynamo_shared.api.conversion import NotConvertible, convert, operators, without_released
from dynamo_shared.api.defaults import at_each_write, default
from dynamo_shared.api.embedded import Checker
from dynamo_shared.api.engines.images import REPOSITORY
from dynamo_shared.api.errors import FieldError, InvalidManifest
from dynamo_shared.api.field_errors import path_of
from dynamo_shared.api.filled_in import without_filled_in
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, GROUP
from dynamo_shared.api.untrusted.limits import MANIFEST, check_count
from dynamo_shared.api.untrusted.reading import annotation, is_being_deleted, items, mapping
from dynamo_shared.api.untrusted.words import shortened
from dynamo_shared.api.validation import Facts, validate
from dynamo_shared.api.wording import many

from dynamo_admission import jsonpatch
from dynamo_admission.accepted import AcceptedObjects
from dynamo_admission.kinds import resource_of
from dynamo_admission.ratchet import introduced
from dynamo_admission.wire import AdmissionRequest, ReviewStatus

#: Largest number of reported errors: more errors do not help the user, and the size of a status is limited.
LISTED_ERRORS = 50
#: Longest line of one error; only a quoted name of thousands of letters is longer. Characters.
LONGEST_LINE = 1000
#: The API server cuts warnings at 256 characters if all of them together have more than 4096
#: (apiserver/pkg/endpoints/filters, warning.go). Characters.
WARNING_LENGTH = 256
WARNINGS_LENGTH = 4096
CREATE, UPDATE = "CREATE", "UPDATE"
_ALPHA, _BETA = f"{GROUP}/v1alpha1", f"{GROUP}/v1beta1"
_OTHER_VERSION = {_ALPHA: _BETA, _BETA: _ALPHA}


class Webhook(StrEnum):
    """The webhooks that the API server calls, one path each."""

    MUTATE = "mutate"
    VALIDATE = "validate"
    SCALE = "scale"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class World:
    """The facts of a review beyond its object. `held`: namespaces that another platform of the cluster manages;
    `repository`: that of Dynamo's images.
    """

    facts: Facts = field(default_factory=Facts)
    held: frozenset[str] = frozenset()
    platform_version: str = ""
    repository: str = REPOSITORY


@dataclass(frozen=True, slots=True)
class ReviewVerdict:
    """An answer. Without a refusal the request is allowed; `skipped`: the object was not checked."""

    refusal: ReviewStatus | None = None
    patch: Sequence[jsonpatch.Operation] = ()
    warnings: Sequence[str] = ()
    skipped: bool = False


SKIPPED = ReviewVerdict(skipped=True)


def asks_adapters(request: AdmissionRequest, world: World) -> bool:
    """Whether the verdict depends on the replicas of a graph's adapters: an update changes the replicas of a component
    with an adapter.
    """
    if request.operation != UPDATE or request.sub_resource or request.kind.kind != DYNAMO_GRAPH_DEPLOYMENTS.kind:
        return False
    facts = replace(world.facts, user=request.user_info.username)
    now, before = _adapted(request.object), _adapted(request.old_object)
    return not facts.may_set_adapted_replicas and any(before.get(name) != count for name, count in now.items())


def review(
    request: AdmissionRequest,
    webhook: Webhook,
    world: World,
    checker: Checker,
    adapters: Mapping[str, int] | None = None,
    *,
    accepted: AcceptedObjects | None = None,
) -> ReviewVerdict:
    """Check a creation or an update. Objects that are being deleted, and objects in held namespaces, are admitted.

    `adapters`: replicas of the graph's adapters by component, if `asks_adapters`. `accepted`: objects that the first
    webhook has just accepted.
    """
    if request.operation not in {CREATE, UPDATE} or request.sub_resource or request.namespace in world.held:
        return SKIPPED
    kind = request.kind
    if resource_of(kind.group, kind.version, kind.kind) is None:
        return ReviewVerdict(
            _undecodable(
                f"{kind.kind or 'an object without a kind'} of {kind.group}/{kind.version} is not a kind of this platform"
            )
        )
    obj, old = request.object, request.old_object if request.operation == UPDATE else None
    if not isinstance(obj, dict) or not (old is None or isinstance(old, dict)):
        return ReviewVerdict(_undecodable("request.object must be an object, and in an update request.oldObject, too"))
    if request.operation == UPDATE and is_being_deleted(obj):
        return SKIPPED
    facts = replace(world.facts, user=request.user_info.username, adapter_replicas=adapters)
    creations = accepted if old is None else None
    if creations is not None and webhook is Webhook.VALIDATE:
        known = creations.take(_to_check(obj), facts, checker)
        if known is not None:
            return ReviewVerdict(warnings=bounded(known))
    try:
        # Each rule reads all values, and each value may be an error: a body can have more than a million.
        check_count(obj, MANIFEST)
    except InvalidManifest as error:
        return ReviewVerdict(ReviewStatus("Failure", refusal_text(error.errors), "Invalid", 422))
    desired = obj
    if webhook is Webhook.MUTATE:
        desired = (
            default(obj, platform_version=world.platform_version, repository=world.repository)
            if old is None
            else at_each_write(without_filled_in(without_released(obj, old), old))
        )
    checked = _to_check(desired)
    errors, warnings = _findings(checked, old, facts, checker)
    errors += _hidden(desired, old, checker)
    if errors and old is not None:
        before = [*_findings(old, None, facts, checker)[0], *_hidden(old, None, checker)]
        errors, kept = introduced(errors, checked, before, old)
        warnings = [*(f"{error} (in the stored object)" for error in kept), *warnings]
    if errors:
        return ReviewVerdict(ReviewStatus("Failure", refusal_text(errors), "Invalid", 422))
    if webhook is Webhook.MUTATE:
        if creations is not None:
            creations.remember(checked, facts, checker, warnings)
        return ReviewVerdict(patch=jsonpatch.difference(obj, desired))
    return ReviewVerdict(warnings=bounded(warnings))


def _to_check(obj: KubeObject) -> KubeObject:
    """The object without a status: it is not stored, because it is a subresource of every kind here."""
    return {**obj, "status": None} if "status" in obj else obj


def refusal_text(errors: Sequence[FieldError]) -> str:
    """All errors as one message, each with its path."""
    if len(errors) == 1:
        return _line(errors[0])
    lines = [f"{len(errors)} errors:", *(f"- {_line(error)}" for error in errors[:LISTED_ERRORS])]
    if len(errors) > LISTED_ERRORS:
        lines.append(f"- and {len(errors) - LISTED_ERRORS} more")
    return "\n".join(lines)


def _line(error: FieldError) -> str:
    return shortened(str(error), LONGEST_LINE)


def bounded(warnings: Iterable[str]) -> tuple[str, ...]:
    """Warnings in the form that the API server passes on: each once, on one line, short enough that it does not cut
    them.
    """
    room, kept, dropped = WARNINGS_LENGTH, [], 0
    for warning in dict.fromkeys(" ".join(each.split()) for each in warnings):
        short = shortened(warning, WARNING_LENGTH)
        # Reserve room for the last line.
        if len(short) > room - 40:
            dropped += 1
            continue
        kept.append(short)
        room -= len(short)
    if dropped:
        kept.append(f"and {many(dropped, 'more warning')}")
    return tuple(kept)


def scale_advice(request: AdmissionRequest) -> ReviewVerdict:
    """The advice to scale an adapter, because a graph has no single number of replicas.

    The answer needs no lookup: every client that reaches this port can ask, and must not learn the content of a
    namespace.
    """
    namespace, graph = request.namespace, request.name
    message = (
        "spec.replicas: a graph has several components and is not scaled as a whole; scale the adapter of a component: "
        f"kubectl scale dgdsa {graph}-COMPONENT -n {namespace} --replicas={_replicas(request.object)}; "
        f"`kubectl get dgdsa -n {namespace} -l {labels.GRAPH_DEPLOYMENT_NAME}={graph}` lists them; "
        "`scalingAdapter: {}` creates one for a component; without one, set the component's replicas in the graph's spec"
    )
    return ReviewVerdict(ReviewStatus("Failure", message, "Invalid", 422))


def _findings(
    obj: KubeObject, old: KubeObject | None, facts: Facts, checker: Checker
) -> tuple[list[FieldError], Sequence[str]]:
    """Every error, each once, of the schema, of embedded types and of the rules; and the warnings."""
    result = validate(obj, old, facts)
    errors = [*schema_errors(obj, embedded=False), *checker.errors(obj), *result.errors]
    return list({(error.path, error.message): error for error in errors}.values()), result.warnings


def _hidden(obj: KubeObject, old: KubeObject | None, checker: Checker) -> list[FieldError]:
    """The errors that the annotation of preserved fields causes in the object's other version.

    Typed clients that read that version would fail on a whole list because of one object. Only a new value is checked:
    the other version of a stored object does not change.
    """
    name, text = _preserved(obj)
    other = _OTHER_VERSION.get(str(obj.get("apiVersion")))
    if text is None or other is None or text == _preserved(old or {})[1]:
        return []
    annotations = {each: value for each, value in obj["metadata"]["annotations"].items() if each != name}
    bare = {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
    try:
        errors, expected = (_in_schema(convert({**each, "status": None}, other), checker) for each in (obj, bare))
    except NotConvertible:
        return []
    path = path_of(("metadata", "annotations", name))
    version = other.partition("/")[2]
    return [
        FieldError(path, f"gives an invalid {version} object: {error}; remove the annotation")
        for error in errors
        if error not in expected
    ]


def _preserved(obj: KubeObject) -> tuple[str, str | None]:
    """The annotation that conversion reads, and its value; None without one."""
    known = mapping(mapping(obj.get("metadata")).get("annotations"))
    name = PRESERVED_FIELDS if PRESERVED_FIELDS in known else operators.ANNOTATIONS.get(str(obj.get("kind")), "")
    return name, annotation(known, name)


def _in_schema(obj: KubeObject, checker: Checker) -> list[str]:
    return [str(error) for error in (*schema_errors(obj, embedded=False), *checker.errors(obj))]


def _adapted(graph: Any) -> dict[str, Any]:
    """Replicas of the components with an adapter, of a graph in either version. Accepts invalid input."""
    spec = mapping(mapping(graph).get("spec"))
    entries = [(mapping(each).get("name"), each) for each in items(spec.get("components"))]
    entries += mapping(spec.get("services")).items()
    return {
        name: each.get("replicas")
        for name, each in entries
        if isinstance(name, str) and isinstance(mapping(each).get("scalingAdapter"), dict)
    }


def _undecodable(message: str) -> ReviewStatus:
    return ReviewStatus("Failure", message, "BadRequest", 400)


def _replicas(scale: Any) -> Any:
    replicas = mapping(mapping(scale).get("spec")).get("replicas")
    return replicas if isinstance(replicas, int) else "N"
