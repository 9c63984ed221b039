"""The bad manifests of tests/admission/cases without a server: a changed message is reported within a second.

Objects have sorted keys, as the API server writes them. `offline` is our message for what it rejects itself.
"""

import json
import re

import pytest
from dynamo_admission.review import Webhook, World, review, scale_advice
from dynamo_admission.wire import AdmissionRequest, GroupVersionKind, UserInfo
from dynamo_ctl import embedded_types
from dynamo_shared.api.embedded import Checker
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.validation.check import REFUSING

from tests.admission.case import FACTS, Case, load

LOADED = load()
NAMESPACE = "cases"


@pytest.fixture(scope="session")
def checker() -> Checker:
    """A checker with the types that the API server published."""
    return embedded_types.checker()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in LOADED])
def test_a_bad_manifest_is_rejected_with_its_message(case: Case, checker: Checker) -> None:
    world = World(FACTS[case.cluster])
    if case.scale is None:
        verdict = review(
            _request(case, _as_sent(case.manifest), _as_sent(case.standing)), Webhook.MUTATE, world, checker
        )
    else:
        scale = {"kind": "Scale", "spec": {"replicas": case.scale}}
        verdict = scale_advice(_request(case, scale, scale))
    assert verdict.refusal is not None
    assert verdict.refusal.message == (case.message if case.offline is None else case.offline)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_every_rule_has_a_case_in_every_version_that_has_it(version: str) -> None:
    words = "\n".join(
        case.offline or case.message for case in LOADED if case.subject["apiVersion"] == f"nvidia.com/{version}"
    )
    rules = [rule for rule_set in REFUSING for rule in rule_set.rules if version in rule.versions]
    assert [f"{rule.name}: {says}" for rule in rules for says in rule.says if not _pattern(says).search(words)] == []


def _pattern(says: str) -> re.Pattern[str]:
    """A pattern of a message with any value for its placeholders."""
    return re.compile(".*".join(re.escape(part) for part in re.split(r"\{[a-z_]+\}", says)))


def _request(case: Case, obj: KubeObject | None, old: KubeObject | None) -> AdmissionRequest:
    subject = case.subject
    group, _, version = subject["apiVersion"].partition("/")
    return AdmissionRequest(
        uid="u",
        kind=GroupVersionKind(group, version, subject["kind"]),
        operation="CREATE" if old is None else "UPDATE",
        name=subject["metadata"].get("name", ""),
        namespace=NAMESPACE,
        user_info=UserInfo(case.user),
        object=obj if old is None or case.scale is not None else {**(obj or {}), **_status(old)},
        old_object=old,
    )


def _status(old: KubeObject) -> KubeObject:
    """The fields that an update keeps by itself: the status has its own subresource."""
    return {"status": old["status"]} if "status" in old else {}


def _as_sent(manifest: KubeObject | None) -> KubeObject | None:
    if manifest is None:
        return None
    placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": NAMESPACE}}
    sent: KubeObject = json.loads(json.dumps(placed, sort_keys=True))
    return sent
