"""Fields that a manager no longer applies, if the other version has no path for them."""

import copy
import time
from typing import Any

import pytest
from dynamo_shared.api.conversion import convert, without_released

ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
Object = dict[str, Any]
INGRESS: Object = {"f:ingress": {"f:enabled": {}, "f:host": {}}}
REPLICAS: Object = {"f:replicas": {}}


def entry(fields: Object, manager: str = "me", operation: str = "Apply", **more: Any) -> Object:
    tree = {"f:spec": {"f:services": {"f:a": fields}}}
    return {"manager": manager, "operation": operation, "apiVersion": ALPHA, "fieldsV1": tree, **more}


def graph(*managed: Object, **service: Any) -> Object:
    metadata = {"name": "g", "managedFields": list(managed)}
    spec = {"services": {"a": {"replicas": 1, "ingress": {"enabled": True, "host": "h"}, **service}}}
    return {"apiVersion": ALPHA, "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}


def service_after(obj: Object, old: Object) -> Object:
    before = copy.deepcopy((obj, old))
    result: Object = without_released(obj, old)["spec"]["services"]["a"]
    assert (obj, old) == before
    return result


def test_a_field_that_is_no_longer_applied_is_removed() -> None:
    old = graph(entry({**REPLICAS, **INGRESS}))
    assert service_after(graph(entry(REPLICAS)), old) == {"replicas": 1}


def test_a_part_of_a_field_is_removed() -> None:
    old = graph(entry({**REPLICAS, **INGRESS}))
    new = graph(entry({**REPLICAS, "f:ingress": {"f:enabled": {}}}))
    assert service_after(new, old)["ingress"] == {"enabled": True}


def test_a_field_that_the_other_version_has_is_left_to_the_server() -> None:
    """A user may own it there."""
    old = graph(entry({**REPLICAS, **INGRESS}))
    assert service_after(graph(entry(INGRESS)), old)["replicas"] == 1


ENV: Object = {"f:extraPodSpec": {"f:mainContainer": {"f:env": {}, "f:image": {}}}}


def in_beta(fields: Object) -> Object:
    """The fields of the component in v1beta1 that another manager owns."""
    tree = {"f:spec": {"f:components": {'k:{"name":"a"}': {".": {}, "f:name": {}, **fields}}}}
    return {**entry({}, "other", "Update"), "apiVersion": BETA, "fieldsV1": tree}


@pytest.mark.parametrize(
    ("others", "gone"),
    [
        ([], True),
        ([in_beta({"f:replicas": {}})], True),
        ([{**in_beta({"f:podTemplate": {"f:spec": {"f:containers": {}}}}), "subresource": "status"}], True),
        ([in_beta({"f:podTemplate": {"f:spec": {"f:containers": {}}}})], False),
    ],
    ids=["none", "replicas", "a subresource", "containers"],
)
def test_a_field_merged_into_one_value_of_the_other_version_is_removed_unless_it_has_an_owner_there(
    others: list[Object], gone: bool
) -> None:
    main = {"extraPodSpec": {"mainContainer": {"image": "i", "env": [{"name": "A", "value": "1"}]}}}
    old = graph(entry(ENV), **main)
    new = graph(entry({"f:extraPodSpec": {"f:mainContainer": {"f:image": {}}}}), *others, **main)
    after = service_after(new, old)["extraPodSpec"]["mainContainer"]
    assert after == ({"image": "i"} if gone else main["extraPodSpec"]["mainContainer"])


@pytest.mark.parametrize("version", [ALPHA, BETA])
def test_a_repeated_apply_does_not_record_the_existence_of_fields(version: str) -> None:
    """The first apply of an object records `.` at each level, the next one does not."""
    alpha = {"f:services": {"f:a": {**REPLICAS, "f:extraPodSpec": {"f:nodeName": {}}}}}
    template: Object = {"f:spec": {"f:containers": {}}}
    beta = {"f:components": {'k:{"name":"a"}': {**REPLICAS, "f:name": {}, "f:podTemplate": template}}}
    again = {**entry({}), "apiVersion": version, "fieldsV1": {"f:spec": alpha if version == ALPHA else beta}}
    first = {**again, "fieldsV1": present(again["fieldsV1"])}
    old, new = (convert(graph(each, extraPodSpec={"nodeName": "n"}), version) for each in (first, again))
    assert without_released(new, old) == new


def present(fields: Object) -> Object:
    return {name: {".": {}, **present(each)} if each else {} for name, each in fields.items()}


def test_an_emptied_parent_is_removed_too() -> None:
    limits: Object = {"f:resources": {"f:limits": {"f:gpu": {}}}}
    old, new = (graph(entry(each), resources={"limits": {"gpu": "1"}}) for each in ({**REPLICAS, **limits}, REPLICAS))
    assert "resources" not in service_after(new, old)


@pytest.mark.parametrize(
    "managed",
    [
        [entry(REPLICAS), entry(INGRESS, "other")],
        [entry(REPLICAS), entry(INGRESS, operation="Update")],
        [entry({**REPLICAS, **INGRESS})],
        [],
        [entry(REPLICAS, "other")],
        [entry(REPLICAS, apiVersion=BETA)],
        [entry(REPLICAS, subresource="status")],
    ],
    ids=["another's", "updated", "still applied", "cleared", "unknown", "another version", "a subresource"],
)
def test_a_field_with_an_owner_or_that_never_had_one_stays(managed: list[Object]) -> None:
    old, new = graph(entry({**REPLICAS, **INGRESS})), graph(*managed)
    assert without_released(new, old) is new


def test_an_updated_field_that_was_not_applied_stays() -> None:
    old = graph(entry({**REPLICAS, **INGRESS}, operation="Update"))
    new = graph(entry(REPLICAS, operation="Update"))
    assert without_released(new, old) is new


def test_fields_of_v1beta1_are_removed_too() -> None:
    def obj(fields: Object) -> Object:
        tree = {"f:spec": {"f:components": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:podTemplate": fields}}}}
        managed = {"manager": "me", "operation": "Apply", "apiVersion": BETA, "fieldsV1": tree}
        template = {"metadata": {"finalizers": ["f"], "labels": {"l": "v"}}}
        metadata = {"name": "g", "managedFields": [managed]}
        spec = {"components": [{"name": "b"}, {"name": "a", "podTemplate": template}]}
        return {"apiVersion": BETA, "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}

    both: Object = {"f:metadata": {"f:finalizers": {}, "f:labels": {"f:l": {}}}}
    after = without_released(obj({"f:metadata": {"f:labels": {"f:l": {}}}}), obj(both))
    assert after["spec"]["components"][1]["podTemplate"] == {"metadata": {"labels": {"l": "v"}}}


@pytest.mark.parametrize("key", ['{"name":"a","x":"y"}', "{}", "[]", '"a"', "1", '{"name":1}', '{"name":{}}', "NaN"])
def test_an_unknown_list_key_is_ignored(key: str) -> None:
    """A user may write any readable record of owners."""

    def obj(fields: Object) -> Object:
        tree = {"f:spec": {"f:components": {f"k:{key}": fields}}}
        managed = {"manager": "me", "operation": "Apply", "apiVersion": BETA, "fieldsV1": tree}
        metadata = {"name": "g", "managedFields": [managed]}
        spec = {"components": [{"name": "a", "type": "worker"}]}
        return {"apiVersion": BETA, "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}

    new = obj({"f:other": {}})
    assert without_released(new, obj({"f:type": {}})) == new


@pytest.mark.parametrize(
    "managed", [None, "x", [None, "x", {"fieldsV1": "x"}], [entry({"f:x": 1, "k:{": {}, "v:1": {}})]]
)
def test_malformed_field_ownership_is_ignored(managed: Any) -> None:
    odd = graph()
    odd["metadata"]["managedFields"] = managed
    sane = graph(entry({**REPLICAS, **INGRESS}))
    assert without_released(odd, sane)["spec"] is not None
    assert without_released(sane, odd) is sane
    model = {"apiVersion": ALPHA, "kind": "DynamoModel", "metadata": odd["metadata"]}
    assert without_released(model, model) is model


def test_each_of_thousands_of_fields_is_searched_once() -> None:
    """A manager may apply as many fields as an object has. Each was compared with all preserved fields."""
    names = [f"label-{number}" for number in range(30_000)]
    ingress = {"enabled": True, "host": "h", "annotations": dict.fromkeys(names, "x")}
    fields: Object = {
        "f:ingress": {"f:annotations": {f"f:{name}": {} for name in names}, "f:enabled": {}, "f:host": {}}
    }
    old = graph(entry({**REPLICAS, **fields}), ingress=ingress)
    new = graph(entry({**REPLICAS, "f:ingress": {"f:enabled": {}, "f:host": {}}}), ingress=ingress)
    began = time.process_time()
    assert service_after(new, old)["ingress"] == {"enabled": True, "host": "h"}
    assert time.process_time() - began < 3
