"""Records become workers, in whatever order they arrive, and workers get their pods."""

import itertools
import random

import msgspec
import pytest
from dynamo_model_discovery.workers import assembly
from dynamo_model_discovery.workers.assembly import FILE, KUBERNETES, SourcedRecord, WorkerObservation, assemble
from dynamo_model_discovery.workers.locations import WorkerLocation, by_address, host_of, location_of
from dynamo_model_discovery.workers.records import parse
from dynamo_model_discovery.workers.retention import Unobserved, settle
from dynamo_shared.api.resources import ObjectKey

from tests.unit.model_discovery.worker_building import card, instance, keyed, pod, worker, workers


def test_the_order_of_records_does_not_matter():
    records = [
        instance(1), instance(1, endpoint="clear_kv_blocks"), card(1, worker_type="decode"), card(1, adapter="a"),
        instance(2, component="prefill"), card(2, component="prefill", worker_type="prefill"),
    ]  # fmt: skip
    first = workers(dict(records))
    for order in itertools.islice(itertools.permutations(records), 0, 720, 7):
        assert workers(dict(order)) == first
    assert [(each.name, each.role, each.endpoints) for each in first.workers.values()] == [
        ("dyn/backend/1", "decode", ["clear_kv_blocks", "generate"]),
        ("dyn/prefill/2", "prefill", ["generate"]),
    ]


def test_a_card_alone_is_not_a_worker():
    assert workers(dict([card(1)])).workers == {}


def test_a_worker_is_the_pod_that_has_its_address():
    pods = [
        pod("other", "10.0.0.9"),
        pod("decode-0", "10.0.0.7", dynamo_graph_deployment_name="g", dynamo_component="Decode",
            dynamo_component_type="worker", dynamo_sub_component_type="decode"),
    ]  # fmt: skip
    observed = workers(dict([instance(7), card(7)]), by_address(pods))
    result = observed.workers[ObjectKey("team", "dyn/backend/7")]
    assert (result.pod, result.pod_uid, result.graph_deployment, result.graph_component) == (
        "decode-0", "uid-decode-0", "g", "Decode",
    )  # fmt: skip
    # The card is of a release that does not say the type; the graph does.
    assert result.role == "decode"
    assert next(iter(workers(dict([instance(7), card(7)])).workers.values())).role == "aggregated"
    assert next(iter(workers(dict([instance(7)])).workers.values())).role == ""


def test_ended_pods_and_pods_on_the_host_network_have_no_address():
    ended, host = pod("ended", "10.0.0.1"), pod("host", "10.0.0.2")
    ended["status"]["phase"], host["spec"] = "Succeeded", {"hostNetwork": True}
    two = pod("two")
    two["status"]["podIPs"] = [{"ip": "10.0.0.3"}, {"ip": "fd00::3"}]
    assert set(by_address([ended, host, two])) == {"10.0.0.3", "fd00::3"}


def test_hosts():
    assert [host_of(each) for each in ("10.0.0.7:9/x", "[fd00::7]:9/x", "http://h:1/x", "", "dyn.backend", "[bad")] == [
        "10.0.0.7", "fd00::7", "h", "", "dyn.backend", "",
    ]  # fmt: skip


def test_a_worker_in_two_sources_is_one_worker_with_the_facts_of_kubernetes():
    key, value = instance(7)
    record = parse(key, value)
    assert record is not None
    location = location_of(pod("decode-0", "10.0.0.7"))
    results = [SourcedRecord("etcd", record), SourcedRecord(KUBERNETES, record, location)]
    for order in (results, results[::-1]):
        observed = assemble(order, {"10.0.0.7": location})
        assert [(each.source, each.pod) for each in observed.workers.values()] == [(KUBERNETES, "decode-0")]


def test_the_same_id_in_two_namespaces_means_two_workers():
    """Ids in Kubernetes are hashes of pod names."""
    record = parse(*instance(7))
    assert record is not None
    observed = assemble(
        [SourcedRecord(KUBERNETES, record, WorkerLocation(each, "decode-0")) for each in ("a", "b")], {}
    )
    assert set(observed.workers) == {ObjectKey("a", "dyn/backend/7"), ObjectKey("b", "dyn/backend/7")}


def test_the_models_of_a_worker_fit_into_a_message():
    cards = [card(1, adapter=f"adapter-{number}", worker_type="aggregated") for number in range(700)]
    random.Random(3).shuffle(cards)
    result = next(iter(workers(dict([instance(1), *cards])).workers.values()))
    assert len(result.models) == 500
    assert len(msgspec.json.encode(result)) < 512 * 1024


def test_cards_of_maximum_size_fit_into_a_message():
    needs = [[f"{number:02}-{other:02}-".ljust(32, "x") for other in range(16)] for number in range(16)]
    cards = [card(1, adapter=f"a-{number}".ljust(250, "x"), needs=needs) for number in range(450)]
    result = next(iter(workers(dict([instance(1), *cards])).workers.values()))
    assert 10 < len(result.models) < 450
    assert len(msgspec.json.encode(result)) < 768 * 1024


def test_workers_of_sources_that_were_not_read_stay():
    etcd, file = worker("d/c/1"), msgspec.structs.replace(worker("d/c/2"), source=FILE)
    published = keyed([etcd, file])
    nothing = WorkerObservation({})
    assert settle(published, nothing, Unobserved()) == {}
    assert settle(published, nothing, Unobserved(sources=frozenset({"etcd"}))) == keyed([etcd])


def test_a_ready_pod_whose_data_is_null_for_a_moment_stays_a_worker():
    one = msgspec.structs.replace(worker("d/c/1"), source=KUBERNETES, pod="p")
    published = keyed([one])
    assert settle(published, WorkerObservation({}), Unobserved(pods=frozenset({("team", "p")}))) == published
    assert settle(published, WorkerObservation({}), Unobserved(pods=frozenset({("other", "p")}))) == {}


def test_a_damaged_record_does_not_change_a_known_worker_and_is_a_worker_if_it_is_new():
    key, value = instance(7)
    whole = workers({key: value})
    damaged = workers({key: b"{"})
    assert settle(whole.workers, damaged, Unobserved()) == whole.workers
    assert settle({}, damaged, Unobserved()) == damaged.workers


def test_a_worker_keeps_its_graph_if_its_pod_is_gone_or_another_pod_has_its_address():
    records = dict([instance(7), card(7)])
    before = workers(records, by_address([pod("decode-0", "10.0.0.7", dynamo_component_type="decode")])).workers
    assert [each.role for each in before.values()] == ["decode"]
    for locations in ({}, by_address([pod("stranger", "10.0.0.7", namespace="elsewhere")])):
        assert settle(before, workers(records, locations), Unobserved()) == before


def test_a_worker_whose_cards_are_deleted_before_its_endpoints_keeps_its_role():
    """The records of a killed worker expire one by one, and its end is reported with the role that it had."""
    endpoint, served = instance(7), card(7, worker_type="decode")
    locations = by_address([pod("decode-0", "10.0.0.7")])
    before = workers(dict([endpoint, served]), locations).workers
    (settled,) = settle(before, workers(dict([endpoint]), locations), Unobserved()).values()
    assert (settled.role, settled.models) == ("decode", [])


def test_a_worker_moves_to_its_pod_when_the_pod_becomes_known():
    records = dict([instance(7), card(7)])
    before = workers(records).workers
    after = workers(records, by_address([pod("decode-0", "10.0.0.7")]))
    assert set(settle(before, after, Unobserved())) == {ObjectKey("team", "dyn/backend/7")}


def test_a_model_at_two_endpoints_of_a_process_is_one_model_with_the_first_card():
    one, (key, value) = card(1, worker_type="decode", context_length=1), card(1, worker_type="decode", context_length=2)
    other = (key.replace("/generate/", "/later/"), value)
    for order in ([one, other], [other, one]):
        result = next(iter(workers(dict([instance(1), *order])).workers.values()))
        assert [model.context_length for model in result.models] == [1]


def _of_pods(count: int, namespace: str, pods: int) -> list[SourcedRecord]:
    """One endpoint for each of that many workers of a namespace, spread over that many pods."""
    keys = [instance(number, component=namespace) for number in range(count)]
    records = [parse(key, value) for key, value in keys]
    assert all(records)
    return [
        SourcedRecord(KUBERNETES, record, WorkerLocation(namespace, f"pod-{number % pods}"))
        for number, record in enumerate(records)
        if record is not None
    ]


def test_the_workers_of_one_pod_are_limited():
    observed = assemble([*_of_pods(2000, "bad", 1), *_of_pods(40, "good", 2)], {})
    assert [sum(key.namespace == each for key in observed.workers) for each in ("bad", "good")] == [32, 40]
    assert observed.truncated == {"bad"}


@pytest.mark.parametrize("bound", ["MAX_WORKERS_OF_NAMESPACE", "MAX_RECORDS_OF_NAMESPACE"])
def test_the_workers_and_records_of_one_namespace_are_limited(bound: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(assembly, bound, 10)
    observed = assemble([*_of_pods(30, "bad", 30), *_of_pods(10, "good", 10)], {})
    assert [sum(key.namespace == each for key in observed.workers) for each in ("bad", "good")] == [10, 10]
    assert observed.truncated == {"bad"}
