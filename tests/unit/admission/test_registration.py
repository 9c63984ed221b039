"""The webhook configurations, and when they count as registered."""

import base64
import copy

import pytest
from dynamo_admission.registration import (
    Address,
    Registration,
    bundles_in,
    configurations,
    conversion_patch,
    conversions,
    holds,
    is_own,
    is_written,
)

ONE, TWO = (f"-----BEGIN CERTIFICATE-----\n{letter}\n-----END CERTIFICATE-----\n".encode() for letter in "AB")
SERVICE = Address("system", "dynamo-admission", 443)
LOCAL = Address("system", url="https://127.0.0.1:9443")


def webhooks(registration: Registration):
    return [webhook for _, obj in configurations(registration) for webhook in obj["webhooks"]]


def test_a_service_is_verified_by_its_cluster_dns_name():
    assert SERVICE.names == (
        "dynamo-admission.system.svc", "dynamo-admission.system.svc.cluster.local", "dynamo-admission.system",
    )  # fmt: skip
    assert LOCAL.names == ("127.0.0.1",)
    assert LOCAL.client_config("/convert") == {"url": "https://127.0.0.1:9443/convert"}


def test_rules_name_both_versions_and_no_subresource_but_scale():
    rules = [(webhook["name"], rule) for webhook in webhooks(Registration(SERVICE)) for rule in webhook["rules"]]
    versions = {plural: rule["apiVersions"] for _, rule in rules for plural in rule["resources"]}
    assert versions["dynamographdeployments"] == ["v1alpha1", "v1beta1"]
    assert versions["dynamomodels"] == ["v1alpha1", "v1beta1"]
    assert {plural for plural in versions if "/" in plural} == {"dynamographdeployments/scale"}
    assert all(rule["apiGroups"] == ["nvidia.com"] for _, rule in rules)


def test_worker_metadata_is_not_reviewed():
    plurals = {
        plural for hook in webhooks(Registration(SERVICE)) for rule in hook["rules"] for plural in rule["resources"]
    }
    assert "dynamoworkermetadatas" not in plurals


def test_configurations_belong_to_the_owner_and_definitions_do_not():
    owner = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "dynamo", "uid": "1"}
    for _, configuration in configurations(Registration(SERVICE, owner=owner)):
        assert configuration["metadata"]["ownerReferences"] == [owner]
    for _, definition in conversions(Registration(SERVICE, owner=owner)):
        assert "ownerReferences" not in definition["metadata"]
    for _, configuration in configurations(Registration(SERVICE)):
        assert "ownerReferences" not in configuration["metadata"]


def test_requests_are_rejected_while_the_webhook_is_unavailable():
    assert {webhook["failurePolicy"] for webhook in webhooks(Registration(SERVICE))} == {"Fail"}
    assert {webhook["sideEffects"] for webhook in webhooks(Registration(SERVICE))} == {"None"}


def test_the_ca_bundle_is_written_unless_cert_manager_does():
    assert {base64.b64decode(hook["clientConfig"]["caBundle"]) for hook in webhooks(Registration(SERVICE, ONE))} == {
        ONE
    }
    injected = Registration(SERVICE, ONE, inject_from="system/certificate")
    for _, obj in [*configurations(injected), *conversions(injected)]:
        assert obj["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "system/certificate"}
        assert "caBundle" not in str(obj)


def test_every_kind_with_two_versions_is_converted():
    names = {obj["metadata"]["name"].partition(".")[0] for _, obj in conversions(Registration(SERVICE))}
    assert names == {
        "dynamographdeployments", "dynamocomponentdeployments", "dynamographdeploymentscalingadapters",
        "dynamographdeploymentrequests",
    }  # fmt: skip


def test_a_platform_of_one_namespace_has_its_own_configurations():
    registration = Registration(SERVICE, restricted="team")
    assert {obj["metadata"]["name"] for _, obj in configurations(registration)} == {"dynamo-admission-team"}
    for webhook in webhooks(registration):
        assert webhook["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "team"}}


@pytest.mark.parametrize(
    ("observed", "trusted"), [(ONE, True), (ONE + TWO, True), (TWO + ONE.replace(b"\n", b"\r\n"), True), (TWO, False)]
)
def test_other_ca_bundles_may_be_registered_too(observed, trusted):
    _, desired = configurations(Registration(SERVICE, ONE))[0]
    there = copy.deepcopy(desired)
    there["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(observed).decode()
    assert holds(there, desired) is trusted


def test_defaults_of_the_api_server_do_not_count_as_a_change_and_changes_of_others_do():
    _, desired = configurations(Registration(SERVICE, ONE))[1]
    there = copy.deepcopy(desired)
    there["metadata"]["resourceVersion"] = "1"
    there["webhooks"][0]["matchConditions"] = []
    assert holds(there, desired)
    for change in (
        {"failurePolicy": "Ignore"},
        {"objectSelector": {"matchLabels": {"a": "b"}}},
        {"rules": there["webhooks"][0]["rules"][:1]},
    ):
        changed = copy.deepcopy(there)
        changed["webhooks"][0].update(change)
        assert not holds(changed, desired)


def test_a_service_is_replaced_by_a_url_and_back():
    stand_in = {"spec": {"conversion": {"webhook": {"clientConfig": SERVICE.client_config("/convert")}}}}
    patch = conversion_patch(stand_in, Registration(LOCAL, ONE))
    assert patch is not None
    client = patch["spec"]["conversion"]["webhook"]["clientConfig"]
    assert client["service"] is None
    assert client["url"] == "https://127.0.0.1:9443/convert"
    assert conversion_patch(stand_in, Registration(SERVICE, ONE)) is None
    assert is_own(stand_in, Registration(SERVICE))
    assert not is_own(stand_in, Registration(LOCAL))


def test_no_bundle_is_trusted_if_none_is_registered():
    assert bundles_in({"spec": {"conversion": {"strategy": "None"}}}) == []
    assert bundles_in({"webhooks": [{"clientConfig": {"url": "https://a"}}]}) == [b""]


def applied(registration: Registration, manager: str = "me"):
    """The mutating configuration as the API server returns it after an apply."""
    obj = copy.deepcopy(configurations(registration)[0][1])
    owns_bundle: dict[str, object] = {"f:caBundle": {}} if registration.bundle and not registration.inject_from else {}
    obj["metadata"]["managedFields"] = [
        {"manager": manager, "operation": "Apply", "fieldsV1": {"f:webhooks": owns_bundle}}
    ]
    return obj


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        (Registration(SERVICE, ONE), Registration(SERVICE, ONE), True),
        (Registration(SERVICE, ONE + TWO), Registration(SERVICE, TWO + ONE), True),
        (Registration(SERVICE, ONE + TWO), Registration(SERVICE, ONE), False),
        (Registration(SERVICE, ONE), Registration(SERVICE, ONE + TWO), False),
        (Registration(SERVICE, ONE), Registration(LOCAL, ONE), False),
        (Registration(SERVICE, ONE), Registration(SERVICE, inject_from="a/b"), False),
        (Registration(SERVICE, inject_from="a/b"), Registration(SERVICE, ONE), False),
        (Registration(SERVICE, inject_from="a/b"), Registration(SERVICE, inject_from="a/b"), True),
        (Registration(SERVICE, ONE), Registration(SERVICE), False),
        (Registration(SERVICE, ONE, owner={"uid": "1"}), Registration(SERVICE, ONE), False),
    ],
)
def test_an_unchanged_configuration_is_not_written_again(before: Registration, after: Registration, written: bool):
    desired = configurations(after)[0][1]
    assert is_written(applied(before), desired, "me") is written
    assert not is_written(applied(before, "another"), desired, "me")


def test_a_ca_bundle_of_another_writer_is_kept():
    observed = applied(Registration(SERVICE))
    observed["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(ONE).decode()
    assert is_written(observed, configurations(Registration(SERVICE))[0][1], "me")


def test_objects_of_the_platforms_services_are_recognized_by_their_user():
    """The graph was reviewed already. Any user could set a label or a field manager."""
    registration = Registration(SERVICE, operators=frozenset({"system:serviceaccount:dynamo:builder", 'o"dd'}))
    users = '["o\\"dd", "system:serviceaccount:dynamo:builder"]'
    for webhook in webhooks(registration):
        if webhook["name"].startswith("scale."):
            assert "matchConditions" not in webhook
            continue
        (condition,) = webhook["matchConditions"]
        assert condition["expression"] == (
            '!(request.operation == "CREATE" && request.resource.resource == "dynamocomponentdeployments"'
            f" && request.userInfo.username in {users})"
        )


def test_without_its_own_users_every_object_is_reviewed():
    assert not any("matchConditions" in webhook for webhook in webhooks(Registration(SERVICE)))
