"""What belongs to an object, by owner references."""

from collections.abc import Iterable
from typing import Any

from dynamo_dynadmin.api.family import descendants, health, relatives
from dynamo_dynadmin.api.family import tree as tree_of


def obj(kind: str, name: str, *owners: tuple[str, str, str], **labels: str) -> dict[str, Any]:
    references = [{"kind": kind, "name": name, "uid": uid} for kind, name, uid in owners]
    return {
        "kind": kind,
        "metadata": {"name": name, "uid": f"u-{name}", "ownerReferences": references, "labels": labels},
    }


def tree(root: dict[str, Any], objects: Iterable[dict[str, Any]]) -> dict[str, Any]:
    known = [root, *objects]
    return tree_of(root, known[1:], {each["metadata"]["uid"]: health(each) for each in known})


GRAPH = obj("DynamoGraphDeployment", "g")
COMPONENT = obj("DynamoComponentDeployment", "g-w", ("DynamoGraphDeployment", "g", "u-g"))
DEPLOYMENT = obj("Deployment", "g-w-d", ("DynamoComponentDeployment", "g-w", "u-g-w"))
POD = obj("Pod", "g-w-d-12ab-x", ("ReplicaSet", "g-w-d-12ab", "u-set"), **{"pod-template-hash": "12ab"})
STRANGER = obj("Pod", "other-9-x", ("ReplicaSet", "other-9", "u-other"), **{"pod-template-hash": "9"})


def test_pods_hang_below_their_deployment_though_replica_sets_are_not_read() -> None:
    result = tree(GRAPH, [POD, STRANGER, DEPLOYMENT, COMPONENT])
    [component] = result["children"]
    [deployment] = component["children"]
    assert [each["name"] for each in deployment["children"]] == ["g-w-d-12ab-x"]


def test_an_object_with_owners_on_several_levels_is_shown_once() -> None:
    """Each owner had its own list of what is shown, and each node copied it: seconds for ten thousand pods."""
    twice = obj("Pod", "twice", ("Deployment", "g-w-d", "u-g-w-d"), ("DynamoComponentDeployment", "g-z", "u-g-z"))
    other = obj("DynamoComponentDeployment", "g-z", ("DynamoGraphDeployment", "g", "u-g"))
    result = tree(GRAPH, [twice, DEPLOYMENT, COMPONENT, other])
    shown = [(each["name"], [below["name"] for below in each["children"]]) for each in result["children"]]
    assert shown == [("g-w", ["g-w-d"]), ("g-z", [])]
    assert [each["name"] for each in result["children"][0]["children"][0]["children"]] == ["twice"]


def test_events_of_pods_are_of_the_family() -> None:
    assert ("Pod", "g-w-d-12ab-x") in descendants(GRAPH, [POD, STRANGER, DEPLOYMENT, COMPONENT])
    assert ("Pod", "other-9-x") not in descendants(GRAPH, [POD, STRANGER, DEPLOYMENT, COMPONENT])


def test_objects_that_own_each_other_are_shown_once() -> None:
    """Who may write a namespace's objects may write any owner references: 20 such Services would make 20**10 nodes."""
    names = [f"s{number:02}" for number in range(20)]
    everyone = [("Service", name, f"u-{name}") for name in names]
    services = [obj("Service", name, ("DynamoGraphDeployment", "g", "u-g"), *everyone) for name in names]
    result = tree(GRAPH, services)
    assert [each["name"] for each in result["children"]] == names
    assert not any(each["children"] for each in result["children"])
    assert len(descendants(GRAPH, services)) == 1 + len(names)


def test_an_object_that_names_its_owner_twice_is_shown_once() -> None:
    twice = obj("Service", "s", ("DynamoGraphDeployment", "g", "u-g"), ("DynamoGraphDeployment", "g", "u-g"))
    assert [each["name"] for each in tree(GRAPH, [twice])["children"]] == ["s"]


def test_relatives_are_all_that_a_tree_shows() -> None:
    several = obj("Service", "s", ("DynamoGraphDeployment", "g", "u-g"), ("Deployment", "g-w-d", "u-g-w-d"))
    objects = [POD, STRANGER, DEPLOYMENT, COMPONENT, several]
    owned = relatives(GRAPH, objects)
    assert [each["metadata"]["name"] for each in owned] == ["g-w", "s", "g-w-d", "g-w-d-12ab-x"]
    assert tree(GRAPH, owned) == tree(GRAPH, objects)
