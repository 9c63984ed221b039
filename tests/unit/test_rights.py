"""Rights: rules of them, what they cover, and how an audit log is held against them."""

import json
from collections import Counter

import pytest
from dynamo_ctl.services import SERVICES
from dynamo_shared.api.resources import CONFIG_MAPS, DEPLOYMENTS, LEASES, PODS, SECRETS
from dynamo_shared.api.rights import SECURE_METRICS, Right, standby

from tests.rights.audit import Request, requests
from tests.rights.compare import compare
from tools.generate.charts.rights import of_service, rules, tree


def test_rules_are_one_for_each_group_verbs_and_names() -> None:
    made = rules(
        [
            Right(PODS, ("list",)),
            Right(CONFIG_MAPS, ("list",)),
            Right(PODS, ("get",)),
            Right(DEPLOYMENTS, ("patch",), "scale"),
            Right(SECRETS, ("get",), names=("one",)),
        ]
    )
    assert made == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]},
    ]


#: It acts with the rights of who calls it, and has few of its own.
FOR_CALLERS = "dynadmin"


@pytest.mark.parametrize("service", [name for name in SERVICES if name != FOR_CALLERS])
def test_no_service_may_do_everything(service: str) -> None:
    for right in of_service(service):
        assert "*" not in (*right.verbs, right.resource.group, right.plural)
        assert not {"escalate", "bind", "impersonate"} & set(right.verbs)


def test_only_admission_writes_what_has_no_namespace() -> None:
    writers = {
        service
        for service, places in tree().items()
        for part, held in places["cluster"].items()
        # Reviews are questions: nothing is stored.
        if part != SECURE_METRICS
        for rule in held
        if not set(rule["verbs"]) <= {"get", "list", "watch"}
    }
    assert writers - {FOR_CALLERS} == {"admission"}


def line(verb: str, code: int, agent: str = "dynamo-platform/0.1.0 (dynamo-pod-builder)", **about: str) -> bytes:
    ref = {"resource": "deployments", "apiGroup": "apps", "namespace": "n", "name": "d", **about}
    return json.dumps({"verb": verb, "userAgent": agent, "objectRef": ref, "responseStatus": {"code": code}}).encode()


def test_requests_of_services_are_read_from_the_log() -> None:
    log = [
        line("patch", 200),
        line("patch", 201),
        line("patch", 403, subresource="scale"),
        line("get", 200, agent="kubectl/v1.35.4"),
        line("get", 200, agent="dynamo-platform/0.1.0 (dynamo-planner-plans)"),
        line("get", 200, agent="dynamo-platform/0.1.0 (dynamo-planner)"),
        b'{"verb": "ge',
    ]
    assert list(requests(log)) == [
        Request("pod-builder", "patch", "apps", "deployments", "d", "n"),
        Request("pod-builder", "patch", "apps", "deployments", "d", "n"),
        Request("pod-builder", "create", "apps", "deployments", "d", "n"),
        Request("pod-builder", "patch", "apps", "deployments/scale", "d", "n", forbidden=True),
        Request("planner", "get", "apps", "deployments", "d", "n"),
        Request("profiler", "get", "apps", "deployments", "d", "n"),
    ]


def test_an_impersonated_request_took_the_right_to_impersonate_its_user() -> None:
    ref = {"resource": "pods", "apiGroup": "", "namespace": "n", "name": "p"}
    user = {"username": "system:serviceaccount:dynamo-system:dynadmin"}
    event = {"verb": "delete", "userAgent": "dynamo-platform/0.1.0 (dynamo-dynadmin)", "user": user, "objectRef": ref}
    log = [
        json.dumps({**event, "impersonatedUser": {"username": name}}).encode()
        for name in ("alice", "system:serviceaccount:n:robot")
    ]
    account = "system:serviceaccount:dynamo-system:dynadmin"
    assert list(requests(log)) == [
        Request("dynadmin", "impersonate", "", "users", "alice", "", user=account),
        Request("dynadmin", "impersonate", "", "serviceaccounts", "system:serviceaccount:n:robot", "", user=account),
    ]


def test_requests_and_rights_are_held_against_each_other() -> None:
    rights = {
        "scaler": [
            Right(PODS, ("get", "list")),
            Right(SECRETS, ("get",), names=("one",)),
            Right(CONFIG_MAPS, ("get",), unused="only after a crash"),
            *standby("scaler"),
        ]
    }
    results = Counter(
        {
            Request("scaler", "list", "", "pods", "", "n"): 3,
            Request("scaler", "get", "", "secrets", "one", "n"): 1,
            Request("scaler", "get", "", "secrets", "two", "n"): 2,
            **{Request("scaler", "get", LEASES.group, "leases", f"dynamo-eu-{each}", "n"): 1 for each in SERVICES},
            Request("tests", "delete", "", "pods", "", "n"): 1,
        }
    )
    verdict = compare(results, rights)
    leases = f"scaler: get leases {LEASES.group} ({len(SERVICES) - 1} times)"
    assert verdict.lacking == (leases, "scaler: get secrets core (2 times)")
    assert verdict.idle == ("scaler: get pods core",)
    assert "scaler: get configmaps core: only after a crash" in verdict.spoken_for
    assert len(verdict.spoken_for) == 3
    assert (verdict.covered, verdict.used) == (5, 3)
