"""The step for a child, given the observed object: one row for each case."""

from typing import Any

import pytest
from dynamo_pod_builder.child_steps import (
    Apply,
    Create,
    Leave,
    Patch,
    Refuse,
    Replace,
    SetReplicas,
    Step,
    TakeOver,
    step,
)
from dynamo_pod_builder.errors import NameTaken, PredecessorRemains
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import LAST_APPLIED_GENERATION, LAST_APPLIED_HASH
from dynamo_shared.api.registry.labels import APP_MANAGED_BY, BASE_MODEL_HASH
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    PERSISTENT_VOLUME_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from dynamo_shared.kube.stamps import stamped

from tests.building.objects import object_of, with_metadata

from .graph.building import stored

OWNER = {"apiVersion": "v1", "kind": "Graph", "name": "graph", "uid": "owner", "controller": True}


def child(resource: Resource, **fields: Any) -> KubeObject:
    return object_of(resource, "child", labels={"a": "1"}, ownerReferences=[OWNER], **fields)


def there(of: KubeObject, **metadata: Any) -> KubeObject:
    """The child as it was applied and is stored, except for some of its metadata."""
    return with_metadata(stored(stamped(of)), **metadata)


def owned(by: dict[str, Any], *others: dict[str, Any]) -> KubeObject:
    return there(ACCOUNT, ownerReferences=[{**OWNER, **by}, *others])


def of_reference(desired: KubeObject, **annotations: str) -> KubeObject:
    return with_metadata(stored(desired), annotations={LAST_APPLIED_GENERATION: "1", **annotations})


ACCOUNT = child(SERVICE_ACCOUNTS)
SERVICE, OTHER_SERVICE = (child(SERVICES, spec={"selector": {"app": app}}) for app in ("a", "b"))
BINDING, OTHER_BINDING = (child(ROLE_BINDINGS, roleRef={"name": name}) for name in ("a", "b"))
TEMPLATE, OTHER_TEMPLATE = (child(RESOURCE_CLAIM_TEMPLATES, spec={"spec": {"devices": each}}) for each in ("a", "b"))
ADAPTER, SCALED_ADAPTER, OTHER_ADAPTER = (
    child(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, spec={"replicas": replicas, "dgdRef": {"name": name}})
    for replicas, name in ((1, "a"), (5, "a"), (1, "b"))
)
DEPLOYMENT, SCALED, IDLE, OTHER = (
    child(DEPLOYMENTS, spec={"replicas": replicas, "paused": False, "template": template})
    for replicas, template in ((1, "a"), (3, "a"), (None, "a"), (1, "b"))
)
CLAIM, FOREIGN_CLAIM = (
    child(PERSISTENT_VOLUME_CLAIMS),
    with_metadata(child(PERSISTENT_VOLUME_CLAIMS), ownerReferences=[]),
)
HASH, OTHER_HASH = (objects.annotations(stamped(each))[LAST_APPLIED_HASH] for each in (DEPLOYMENT, OTHER))


@pytest.mark.parametrize(
    ("desired", "observed", "kind"),
    [
        pytest.param(ACCOUNT, None, Create, id="nothing is there"),
        pytest.param(ACCOUNT, there(ACCOUNT), Leave, id="it is right"),
        pytest.param(ACCOUNT, there(ACCOUNT, labels={"a": "1", "theirs": "1"}), Leave, id="others may add labels"),
        pytest.param(ACCOUNT, there(ACCOUNT, labels={}), Apply, id="a label was taken away"),
        pytest.param(SERVICE, there(OTHER_SERVICE), Apply, id="another spec is desired"),
        pytest.param(CLAIM, there(FOREIGN_CLAIM), Leave, id="data is taken as it is, whatever its owner"),
        pytest.param(BINDING, there(OTHER_BINDING), Replace, id="a role that cannot change"),
        pytest.param(BINDING, there(BINDING, labels={}), Apply, id="of a binding, what can change"),
        pytest.param(TEMPLATE, there(OTHER_TEMPLATE), Replace, id="claims that cannot change"),
        pytest.param(ADAPTER, there(SCALED_ADAPTER), Leave, id="an adapter's number is another's"),
        pytest.param(ADAPTER, there(OTHER_ADAPTER), Patch, id="an adapter that belongs to another graph"),
        pytest.param(DEPLOYMENT, there(SCALED), SetReplicas, id="another number alone"),
        pytest.param(IDLE, there(SCALED), Leave, id="no number is desired"),
        pytest.param(OTHER, there(SCALED), Apply, id="another number, and more"),
        pytest.param(
            DEPLOYMENT,
            {**there(DEPLOYMENT), "spec": {**SCALED["spec"], "paused": True}},
            Apply,
            id="another number, and a field that another client changed",
        ),
    ],
)
def test_the_difference_decides_the_step(desired: KubeObject, observed: KubeObject | None, kind: type[Step]) -> None:
    assert type(step(desired, observed)) is kind


@pytest.mark.parametrize(
    ("holder", "raised"),
    [
        pytest.param({"uid": "old"}, PredecessorRemains, id="of the graph that had the name before"),
        pytest.param({"uid": "old", "name": "another"}, NameTaken, id="of another graph"),
        pytest.param({"uid": "old", "kind": "Deployment"}, NameTaken, id="of another kind"),
        pytest.param({"controller": False}, NameTaken, id="of no one"),
    ],
)
def test_an_object_of_another_owner_is_refused(holder: dict[str, Any], raised: type[NameTaken]) -> None:
    refused = step(ACCOUNT, owned(holder), {"relative"})
    assert isinstance(refused, Refuse)
    assert type(refused.error) is raised


def test_an_object_that_graphs_share_is_not_taken_from_its_owner() -> None:
    shared = with_metadata(ACCOUNT, ownerReferences=[], labels={APP_MANAGED_BY: "us"})
    assert isinstance(step(shared, there(ACCOUNT)), Refuse)


def test_an_object_of_the_family_is_taken_over_and_keeps_its_other_owners() -> None:
    other = {**OWNER, "uid": "other", "controller": False}
    taken = step(ACCOUNT, owned({"uid": "relative"}, other), {"relative"})
    assert taken == TakeOver({"metadata": {"resourceVersion": "1", "ownerReferences": [OWNER, other]}})


def of_model(owner: KubeObject, port: int = 9090) -> KubeObject:
    spec = {"selector": {BASE_MODEL_HASH: "abc"}, "ports": [{"port": port}]}
    return object_of(SERVICES, "dynamo-model-abc", ownerReferences=[owner], spec=spec)


FIRST, SECOND, SET = (
    {"apiVersion": "v1", "kind": kind, "name": uid, "uid": uid, "controller": True, "blockOwnerDeletion": True}
    for kind, uid in (
        ("DynamoComponentDeployment", "first"),
        ("DynamoComponentDeployment", "second"),
        ("DynamoGraphDeployment", "graph"),
    )
)
FURTHER = {name: SECOND[name] for name in ("apiVersion", "kind", "name", "uid")}
NOT_A_MODEL = {**SERVICE, "metadata": {**SERVICE["metadata"], "ownerReferences": [FIRST]}}


def created(desired: KubeObject) -> KubeObject:
    made = step(desired, None)
    assert isinstance(made, Create)
    return stored(made.body)


@pytest.mark.parametrize("owner", [FIRST, SET], ids=["a component's", "a graph's, on Grove"])
def test_the_service_of_a_model_gets_a_further_owner(owner: KubeObject) -> None:
    observed = created(of_model(owner))
    version = observed["metadata"]["resourceVersion"]
    joined = step(of_model(SECOND), observed)
    assert joined == TakeOver({"metadata": {"resourceVersion": version, "ownerReferences": [owner, FURTHER]}})


@pytest.mark.parametrize(
    "owners",
    [pytest.param([FIRST, FURTHER], id="all"), pytest.param([FURTHER], id="the one that created it was deleted")],
)
def test_every_owner_of_a_models_service_accepts_and_corrects_it(owners: list[KubeObject]) -> None:
    """The hash in it is the same for all owners, otherwise they would write it in turns, without end."""
    observed = with_metadata(created(of_model(FIRST)), ownerReferences=owners)
    assert step(of_model(SECOND), observed) == Leave(observed)
    corrected = step(of_model(SECOND, port=1), observed)
    assert isinstance(corrected, Apply)
    assert corrected.body["metadata"]["ownerReferences"] == owners


@pytest.mark.parametrize(
    "observed",
    [
        pytest.param(with_metadata(created(of_model(FIRST)), ownerReferences=[]), id="no owner"),
        pytest.param(with_metadata(created(of_model(FIRST)), ownerReferences=[OWNER]), id="a foreign owner"),
        pytest.param(created(NOT_A_MODEL), id="not the Service of a model"),
    ],
)
def test_a_foreign_service_with_the_name_of_a_models_is_refused(observed: KubeObject) -> None:
    refused = step(of_model(SECOND), observed)
    assert isinstance(refused, Refuse)
    assert type(refused.error) is NameTaken


@pytest.mark.parametrize(
    ("desired", "observed", "adopted", "kind"),
    [
        pytest.param(DEPLOYMENT, of_reference(DEPLOYMENT), None, Apply, id="as desired: its fields are claimed"),
        pytest.param(DEPLOYMENT, of_reference(DEPLOYMENT), HASH, Leave, id="adopted"),
        pytest.param(DEPLOYMENT, of_reference(SCALED), HASH, Apply, id="adopted, with another number"),
        pytest.param(DEPLOYMENT, there(DEPLOYMENT), OTHER_HASH, Leave, id="adopted once, and changed since"),
    ],
)
def test_deployments_of_the_reference_are_adopted(
    desired: KubeObject, observed: KubeObject, adopted: str | None, kind: type[Step]
) -> None:
    taken = step(desired, observed, adopted=adopted)
    assert type(taken) is kind
    assert not isinstance(taken, Apply) or taken.adopts == HASH


def test_an_adopted_deployment_keeps_its_annotations_until_other_ones_are_desired() -> None:
    observed = of_reference(DEPLOYMENT, **{LAST_APPLIED_HASH: "theirs"})
    adopts, changes = step(DEPLOYMENT, observed), step(OTHER, observed, adopted=HASH)
    assert isinstance(adopts, Apply)
    assert isinstance(changes, Apply)
    assert objects.annotations(adopts.body) == objects.annotations(observed)
    assert objects.annotations(changes.body)[LAST_APPLIED_HASH] == OTHER_HASH
    assert changes.adopts is None
    service = step(SERVICE, of_reference(SERVICE))
    assert isinstance(service, Apply)
    assert service.adopts is None, "a change of its annotations replaces nothing"
