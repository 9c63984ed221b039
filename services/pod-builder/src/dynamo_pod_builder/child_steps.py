"""Decides what to do with one child object, from the observed and the desired one. Pure: `applier.py` carries it out.

1. It does not exist: `Create`, which the API server refuses if the name is taken meanwhile. So an object of another
   owner is never changed, not even in a race.
2. It exists and has another owner: `Refuse` with NameTaken, unless the family owns it (by uid, never by name): then
   `TakeOver`. PredecessorRemains if the owner had the same name and was deleted: the garbage collector will delete the
   object. A co-owned object (`co_owners.py`) gets a further owner.
3. It is managed and has everything that is desired: `Leave`. This is decided on the object itself, so drift of any
   cause counts, and on a hash of the last desired object, which shows when a field is no longer desired.
4. It is managed and differs: `Apply`. If possible, less: `SetReplicas`, or a `Patch` without the fields that belong to
   others. If necessary, more: `Replace`, if the differing field is immutable.
5. It is managed, and the reference operator wrote it: `Apply` once, which removes fields that the operator wrote and
   that are not desired.
"""

from collections.abc import Collection
from dataclasses import dataclass

from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import LAST_APPLIED_GENERATION, LAST_APPLIED_HASH
from dynamo_shared.kube import coverage
from dynamo_shared.kube.stamps import difference, stamped

from dynamo_pod_builder import co_owners
from dynamo_pod_builder.co_owners import is_co_owned
from dynamo_pod_builder.errors import NameTaken, PredecessorRemains

#: Immutable fields: to change them, the object is recreated. Pods keep the claims that a template created for them.
FIXED = {resources.ROLE_BINDINGS: "roleRef", resources.RESOURCE_CLAIM_TEMPLATES: "spec"}
#: A field of the spec that is set at creation and then belongs to others: for adapters, to the autoscaler or the user.
DELEGATED_FIELDS = {resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS: "replicas"}
#: Kinds that autoscaling changes often: if only the replicas differ, one small patch suffices.
SCALED = frozenset({resources.DEPLOYMENTS, resources.LEADER_WORKER_SETS, resources.DYNAMO_COMPONENT_DEPLOYMENTS})
#: Created if missing, and otherwise accepted unchanged, whatever the owner: data outlives the deployment.
TAKEN_AS_IS = frozenset({resources.PERSISTENT_VOLUME_CLAIMS})


@dataclass(frozen=True, slots=True)
class Create:
    """It is missing."""

    body: KubeObject
    """the desired object, with its hash"""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Another owner has it."""

    error: NameTaken


@dataclass(frozen=True, slots=True)
class TakeOver:
    """It changes owners and stays: the family owns it, or it is co-owned. What else it needs is decided on the result."""

    patch: KubeObject


@dataclass(frozen=True, slots=True)
class Leave:
    """It has everything that is desired."""

    observed: KubeObject


@dataclass(frozen=True, slots=True)
class Patch:
    """It differs. The body does not name the field that belongs to others, because its value may change at any time."""

    observed: KubeObject
    body: KubeObject


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """Only the number of replicas differs."""

    observed: KubeObject
    replicas: int


@dataclass(frozen=True, slots=True)
class Replace:
    """An immutable field differs: it is deleted and created again."""

    observed: KubeObject
    body: KubeObject
    because: str


@dataclass(frozen=True, slots=True)
class Apply:
    """It differs: server-side apply. A replace follows if another manager added to a list that this platform owns."""

    observed: KubeObject
    body: KubeObject
    because: str
    adopts: str | None = None
    """hash of the desired object, if a Deployment of the reference operator is adopted under it"""


Step = Create | Refuse | TakeOver | Leave | Patch | SetReplicas | Replace | Apply


def step(
    desired: KubeObject, observed: KubeObject | None, family: Collection[str] = (), adopted: str | None = None
) -> Step:
    """What to do next; `family`: uids of owners from which the object is taken over.

    `adopted`: the hash under which a Deployment of the reference operator was adopted, because it has no annotation
    with it.
    """
    if observed is None:
        return Create(stamped(desired, with_owners=not is_co_owned(desired)))
    resource = resources.of(desired)
    if resource in TAKEN_AS_IS:
        return Leave(observed)
    if is_co_owned(desired):
        return _co_owned(desired, observed)
    if not is_managed(desired, observed):
        return _owner_change(desired, observed, family)
    if resource in DELEGATED_FIELDS:
        return _all_but(DELEGATED_FIELDS[resource], desired, observed)
    body = stamped(desired)
    digest = objects.annotations(body)[LAST_APPLIED_HASH]
    of_reference = resource == resources.DEPLOYMENTS and LAST_APPLIED_GENERATION in objects.annotations(observed)
    adopts = digest if of_reference and adopted in (None, digest) else None
    if adopts is not None:
        body = _with_annotations_of(desired, observed)
    because = difference(body, observed)
    if not because:
        return Leave(observed) if adopts in (None, adopted) else Apply(observed, body, "it is adopted", adopts)
    if adopts is None and resource in SCALED and _has_all_but_replicas(body, observed):
        return SetReplicas(observed, body["spec"]["replicas"])
    fixed = FIXED.get(resource)
    if fixed is not None and coverage.missing(body[fixed], observed[fixed]):
        return Replace(observed, body, because)
    return Apply(observed, body, because, adopts)


def is_managed(desired: KubeObject, observed: KubeObject) -> bool:
    """Whether the desired owner controls the object; without one, whether it has this platform's managed-by label."""
    owner = objects.controller_of(desired)
    if owner is None:
        return objects.labels(observed).get(labels.APP_MANAGED_BY) == objects.labels(desired).get(labels.APP_MANAGED_BY)
    holder = objects.controller_of(observed)
    return holder is not None and holder["uid"] == owner["uid"]


def _owner_change(desired: KubeObject, observed: KubeObject, family: Collection[str]) -> TakeOver | Refuse:
    resource, holder, new_owner = resources.of(desired), objects.controller_of(observed), objects.controller_of(desired)
    if holder is None or new_owner is None:
        return Refuse(NameTaken(resource, observed))
    if holder["uid"] not in family:
        named_alike = (holder["kind"], holder["name"]) == (new_owner["kind"], new_owner["name"])
        return Refuse((PredecessorRemains if named_alike else NameTaken)(resource, observed))
    metadata = observed["metadata"]
    others = [ref for ref in metadata["ownerReferences"] if ref["uid"] not in (holder["uid"], new_owner["uid"])]
    return TakeOver(co_owners.patch_of(observed, [new_owner, *others]))


def _co_owned(desired: KubeObject, observed: KubeObject) -> Refuse | TakeOver | Leave | Apply:
    """A further owner is added; after that, the object is corrected without a change of its owners."""
    owners, owner = co_owners.owners_of(observed), objects.controller_of(desired)
    if not is_co_owned(observed) or not owners or owner is None:
        return Refuse(NameTaken(resources.of(desired), observed))
    if owner["uid"] not in {each["uid"] for each in owners}:
        return TakeOver(co_owners.patch_of(observed, co_owners.added(owner, observed)))
    metadata = {**desired["metadata"], "ownerReferences": co_owners.references(observed)}
    body = stamped({**desired, "metadata": metadata}, with_owners=False)
    because = difference(body, observed)
    return Apply(observed, body, because) if because else Leave(observed)


def _all_but(field: str, desired: KubeObject, observed: KubeObject) -> Leave | Patch:
    """All of it except one field of the spec."""
    spec = {name: value for name, value in desired["spec"].items() if name != field}
    body = {"metadata": {"labels": desired["metadata"]["labels"]}, "spec": spec}
    return Patch(observed, body) if coverage.missing(body, observed) else Leave(observed)


def _with_annotations_of(desired: KubeObject, observed: KubeObject) -> KubeObject:
    """`desired` with the annotations that the reference operator left on a Deployment.

    Kubernetes treats a change of a Deployment's annotations like a change of its spec: so a correct Deployment keeps
    them.
    """
    metadata, present = desired["metadata"], observed["metadata"]["annotations"]
    kept = {name: present[name] for name in (LAST_APPLIED_HASH, LAST_APPLIED_GENERATION) if name in present}
    return {**desired, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **kept}}}


def _has_all_but_replicas(stamped_object: KubeObject, observed: KubeObject) -> bool:
    """Whether only the number of replicas has to change."""
    spec = {name: value for name, value in stamped_object["spec"].items() if name != "replicas"}
    has_number = stamped_object["spec"].get("replicas") is not None
    return has_number and not difference({**stamped_object, "spec": spec}, observed)
