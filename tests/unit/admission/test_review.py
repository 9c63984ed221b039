"""The answers to admission requests."""

import copy
import json
from typing import Any

import pytest
from dynamo_admission.review import SKIPPED, Webhook, World, bounded, refusal_text, review, scale_advice
from dynamo_admission.wire import GroupVersionKind
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.validation import Facts

from .reviewing import NO_TYPES, graph, question

WORLD = World(platform_version="1.2.0")


def ask(obj: Any, old: Any = None, webhook: Webhook = Webhook.MUTATE, world: World = WORLD, **fields: Any):
    return review(question(obj, old, **fields), webhook, world, NO_TYPES)


def refused(verdict: Any) -> str:
    assert verdict.refusal is not None
    return verdict.refusal.message


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_a_valid_graph_is_accepted_with_its_defaults(version):
    verdict = ask(graph(version))
    assert verdict.refusal is None
    assert verdict.patch == [
        {"op": "add", "path": "/metadata/annotations", "value": {"nvidia.com/dynamo-operator-origin-version": "1.2.0"}}
    ]
    assert ask(graph(version), webhook=Webhook.VALIDATE).patch == ()


def test_an_update_gets_no_defaults():
    assert ask(graph(env=[{"name": "A", "value": "b"}]), graph()).patch == []


def test_roles_that_an_update_adds_get_their_replicas():
    old = graph()
    old["spec"]["components"][0]["multinode"] = {"nodeCount": 3}
    new = copy.deepcopy(old)
    new["spec"]["components"][0]["roles"] = [{"name": "leader"}, {"name": "worker"}]
    assert ask(new, old).patch == [
        {"op": "add", "path": "/spec/components/0/roles/0/replicas", "value": 1},
        {"op": "add", "path": "/spec/components/0/roles/1/replicas", "value": 2},
    ]
    new["spec"]["components"][0]["roles"][1]["replicas"] = 1
    assert "write 2, which follows" in refused(ask(new, old))


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_defaulted_replicas_of_roles_follow_the_node_count(version: str):
    """The author did not write them, so cannot be asked to change them."""
    roles = [{"name": "leader", "replicas": 1}, {"name": "worker", "replicas": 1}]
    spec = {"multinode": {"nodeCount": 2}, "roles": roles}
    of_roles: dict[str, Any] = {
        "f:multinode": {"f:nodeCount": {}},
        "f:roles": {'k:{"name":"worker"}': {".": {}, "f:name": {}}},
    }
    if version == "v1beta1":
        old = graph(components=[{"name": "Worker", "type": "worker", **spec}], backendFramework="sglang")
        owned = {"f:components": {'k:{"name":"Worker"}': of_roles}}
    else:
        old = graph(version, services={"Worker": {"componentType": "worker", **spec}}, backendFramework="sglang")
        owned = {"f:services": {"f:Worker": of_roles}}
    entry = {"manager": "kubectl", "operation": "Apply", "apiVersion": old["apiVersion"], "fieldsV1": {"f:spec": owned}}
    old["metadata"]["managedFields"] = [entry]

    def updated() -> Any:
        new = copy.deepcopy(old)
        part = new["spec"]["services"]["Worker"] if version == "v1alpha1" else new["spec"]["components"][0]
        part["multinode"]["nodeCount"] = 3
        return new

    (operation,) = [each for each in ask(updated(), old).patch if "/roles/" in each["path"]]
    assert operation["path"].endswith("/roles/1/replicas")
    assert (operation["op"], operation["value"]) == ("replace", 2)
    # Replicas that the author wrote stay, and are rejected.
    of_roles["f:roles"]['k:{"name":"worker"}']["f:replicas"] = {}
    assert "write 2, which follows" in refused(ask(updated(), old))
    old["metadata"].pop("managedFields")
    assert "write 2, which follows" in refused(ask(updated(), old))


def test_one_error_is_one_line():
    verdict = ask(graph(backendFramework="vlm"))
    assert verdict.refusal is not None
    assert (verdict.refusal.code, verdict.refusal.reason) == (422, "Invalid")
    assert refused(verdict).startswith("spec.backendFramework: 'vlm' is not allowed")


@pytest.mark.parametrize("webhook", [Webhook.MUTATE, Webhook.VALIDATE])
def test_all_errors_are_reported_at_once(webhook):
    obj = graph("v1alpha1", backendFramework="vlm")
    obj["spec"]["services"]["Frontend"]["replicas"] = -1
    lines = refused(ask(obj, webhook=webhook)).splitlines()
    assert lines[0] == "2 errors:"
    assert {line.partition(": ")[0] for line in lines[1:]} == {
        "- spec.backendFramework", "- spec.services.Frontend.replicas",
    }  # fmt: skip


def test_an_old_error_may_stay_and_gives_a_warning():
    old = graph(backendFramework="vlm")
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"team": "a"}
    assert ask(new, old).refusal is None
    warning, *_ = ask(new, old, Webhook.VALIDATE).warnings
    assert warning.startswith("spec.backendFramework: 'vlm' is not allowed")
    assert warning.endswith("(in the stored object)")


def test_only_a_new_error_is_rejected():
    old = graph(backendFramework="vlm")
    new = copy.deepcopy(old)
    new["spec"]["components"][0]["replicas"] = -1
    assert refused(ask(new, old)).startswith("spec.components[0].replicas: ")


def test_pods_that_kubernetes_would_reject_may_stay_unchanged_and_be_deleted():
    """An object older than the rule can get labels and lose finalizers. The rule applies to changed parts."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "engine:1"}]}}
    old = graph()
    old["spec"]["components"][0]["podTemplate"] = template
    old["metadata"]["finalizers"] = ["example.com/last"]
    world = World(Facts(grove=False))
    at = "spec.components[0].podTemplate.spec"
    assert refused(ask(old, world=world)).startswith(f"{at}.restartPolicy: must be Always, not Never: ")

    new = copy.deepcopy(old)
    new["metadata"] |= {"labels": {"team": "a"}, "finalizers": []}
    new["spec"]["components"][0]["replicas"] = 2
    assert ask(new, old, world=world).refusal is None
    (warning,) = ask(new, old, Webhook.VALIDATE, world=world).warnings
    assert warning.startswith(f"{at}.restartPolicy: must be Always")

    new["spec"]["components"][0]["podTemplate"]["spec"]["activeDeadlineSeconds"] = 60
    assert refused(ask(new, old, world=world)).startswith(f"{at}.activeDeadlineSeconds: not allowed")
    gone = {**new, "metadata": {**new["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert ask(gone, old, world=world) is SKIPPED


def _listed(*containers: Any, **worker: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "engine:1"}, *containers]}}
    return graph(components=[{"name": "Worker", "type": "worker", "replicas": 1, "podTemplate": template, **worker}])


def test_an_old_error_may_move_within_its_list():
    """Another container, component or toleration before it does not make an old error a new one."""
    tolerations = [{"operator": "Exists", "value": "a"}]
    old = _listed({"name": "old"})
    old["spec"]["components"][0]["podTemplate"]["spec"]["tolerations"] = tolerations
    new = copy.deepcopy(old)
    pod = new["spec"]["components"][0]["podTemplate"]["spec"]
    pod["containers"].insert(0, {"name": "new", "image": "other:1"})
    pod["tolerations"].insert(0, {"operator": "Exists"})
    assert ask(new, old).refusal is None
    assert sum("in the stored object" in each for each in ask(new, old, Webhook.VALIDATE).warnings) == 2

    pod["containers"][0].pop("image")
    assert refused(ask(new, old)).startswith("spec.components[0].podTemplate.spec.containers[0].image: required")
    pod["containers"].pop(0)
    pod["tolerations"].append({"operator": "Exists", "value": "a"})
    assert refused(ask(new, old)).startswith("spec.components[0].podTemplate.spec.tolerations[2].value: must be empty")


def test_components_may_be_reordered_even_if_one_has_an_old_error():
    old = _listed({"name": "old"})
    old["spec"]["components"].insert(0, {"name": "Frontend", "type": "frontend", "replicas": 1})
    new = copy.deepcopy(old)
    new["spec"]["components"].reverse()
    assert ask(new, old).refusal is None
    # The error of another component is new.
    new["spec"]["components"][1]["podTemplate"] = new["spec"]["components"][0].pop("podTemplate")
    assert refused(ask(new, old)).startswith("spec.components[1].podTemplate.spec.containers[1].image: required")


@pytest.mark.parametrize(
    "fields", [{"operation": "DELETE"}, {"operation": "CONNECT"}, {"sub_resource": "status"}, {"namespace": "held"}]
)
def test_requests_without_a_rule_are_allowed(fields):
    assert ask(graph(backendFramework="vlm"), world=World(held=frozenset({"held"})), **fields) is SKIPPED


def test_an_object_that_is_being_deleted_is_accepted():
    going = graph(backendFramework="vlm")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert ask(going, graph()) is SKIPPED


@pytest.mark.parametrize("obj", [None, 1, "text", [], True])
def test_an_invalid_object_is_rejected(obj):
    verdict = ask(obj, kind=GroupVersionKind("nvidia.com", "v1beta1", "DynamoGraphDeployment"))
    assert verdict.refusal is not None
    assert verdict.refusal.code == 400


def test_an_unknown_kind_is_rejected():
    verdict = ask({"apiVersion": "apps/v1", "kind": "Deployment"})
    assert refused(verdict) == "Deployment of apps/v1 is not a kind of this platform"


def test_at_most_fifty_errors_are_listed():
    errors = [FieldError(f"spec.a[{number}]", "is wrong") for number in range(60)]
    lines = refusal_text(errors).splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("60 errors:", 52, "- and 10 more")


def test_warnings_have_the_form_that_the_api_server_passes_on():
    assert bounded(["a", "b", "a", "two\nlines"]) == ("a", "b", "two lines")
    (long,) = bounded(["x" * 1000])
    assert len(long) == 256
    many = bounded(f"{number} {'x' * 200}" for number in range(100))
    assert sum(map(len, many)) <= 4096
    assert many[-1] == f"and {100 - len(many) + 1} more warnings"
    assert bounded(f"{number} {'x' * 200}" for number in range(len(many)))[-1] == "and 1 more warning"


@pytest.mark.parametrize(("replicas", "number"), [(3, "3"), ("junk", "N"), (None, "N")])
def test_the_advice_on_scaling_a_graph_names_the_adapter_and_reveals_nothing_of_the_graph(replicas: Any, number: str):
    message = refused(scale_advice(question({"spec": {"replicas": replicas}}, sub_resource="scale")))
    assert f"kubectl scale dgdsa chat-COMPONENT -n team --replicas={number}" in message
    assert "kubectl get dgdsa -n team -l nvidia.com/dynamo-graph-deployment-name=chat" in message
    assert "`scalingAdapter: {}`" in message


@pytest.mark.parametrize("webhook", [Webhook.MUTATE, Webhook.VALIDATE])
def test_no_rule_reads_an_object_with_more_values_than_a_manifest_has(webhook):
    assert refused(ask(graph(env=[0] * 250_000), webhook=webhook)) == "more than 250000 values"


def test_tens_of_thousands_of_errors_are_only_counted():
    message = refused(ask(graph(env=[0] * 20_000)))
    assert message == "20000 errors, more than the 10000 that are listed; correct repeated mistakes first"


PRESERVED = "nvidia.com/preserved-fields"


def keeping(version: str, kept: Any) -> dict[str, Any]:
    """A graph that preserves fields of the version in which it is not written."""
    other = "v1beta1" if version == "v1alpha1" else "v1alpha1"
    obj = graph(version)
    text = json.dumps({"version": 1, "for": other, **kept})
    obj["metadata"]["annotations"] = {PRESERVED: text}
    return obj


@pytest.mark.parametrize(
    ("version", "kept", "said"),
    [
        (
            "v1beta1",
            {"fields": [[["spec", "services", "Other"], {"replicas": "many"}], [["spec", "pvcs"], "none"]]},
            'metadata.annotations["nvidia.com/preserved-fields"]: gives an invalid v1alpha1 object: '
            "spec.pvcs: must be a list, not 'none'; remove the annotation",
        ),
        (
            "v1alpha1",
            {"components": {"Frontend": [[["experimental"], "x"]]}},
            'metadata.annotations["nvidia.com/preserved-fields"]: gives an invalid v1beta1 object: '
            "spec.components[0].experimental: must be an object, not 'x'; remove the annotation",
        ),
    ],
)
def test_preserved_fields_must_be_valid_in_their_version(version: str, kept: Any, said: str) -> None:
    crafted = keeping(version, kept)
    assert said in refused(ask(crafted))
    assert said in refused(ask(crafted, graph(version)))
    # It was stored before, so the object can still be changed.
    assert ask({**crafted, "metadata": {**crafted["metadata"], "labels": {"a": "b"}}}, crafted).refusal is None


def test_only_new_errors_in_preserved_fields_are_rejected() -> None:
    """It was stored before the check existed, so another part of it may change."""
    old = keeping("v1beta1", {"fields": [[["spec", "pvcs"], "none"]]})
    more = keeping("v1beta1", {"fields": [[["spec", "pvcs"], "none"]], "components": {"Frontend": [[["ingress"], {}]]}})
    assert ask(more, old).refusal is None
    worse = keeping("v1beta1", {"fields": [[["spec", "pvcs"], "none"]], "components": {"Frontend": [[["ingress"], 5]]}})
    said = refused(ask(worse, old))
    assert "spec.services.Frontend.ingress: must be an object" in said
    assert "spec.pvcs" not in said


def test_fields_preserved_by_the_operator_must_be_valid_in_their_version() -> None:
    crafted = graph("v1beta1")
    text = json.dumps({"version": 1, "spec": {"services": {"Frontend": {"ingress": "none"}}}})
    crafted["metadata"]["annotations"] = {"nvidia.com/dgd-spec": text}
    said = 'metadata.annotations["nvidia.com/dgd-spec"]: gives an invalid v1alpha1 object: spec.services.Frontend'
    assert said in refused(ask(crafted))
    assert ask({**crafted, "metadata": {**crafted["metadata"], "labels": {"a": "b"}}}, crafted).refusal is None


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize("text", ["junk", '{"version":1,"for":"v1alpha1"}', '{"version":1,"for":"v1beta1"}'])
def test_preserved_fields_that_no_version_reads_are_accepted(version: str, text: str) -> None:
    obj = graph(version)
    obj["metadata"]["annotations"] = {PRESERVED: text}
    assert ask(obj).refusal is None
