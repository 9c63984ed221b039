"""Dynamo's records as several releases write them, and invalid records."""

import json

import pytest
from dynamo_model_discovery.workers.records import CardRecord, EndpointIdentity, EndpointRecord, UnreadableError, parse
from dynamo_model_discovery.workers.sources.base import RecordTable
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.model_discovery.worker_building import card, instance, recorded, workers


def test_a_recording_of_the_runtime_gives_two_workers_with_all_that_the_planner_needs():
    observed = workers(recorded("etcd-1.6.1.json"))
    assert {(key.namespace, worker.role) for key, worker in observed.workers.items()} == {
        ("", "prefill"),
        ("", "decode"),
    }
    decode = next(worker for worker in observed.workers.values() if worker.role == "decode")
    assert decode.name == "dynamo/backend/53da1fddc446718"
    assert decode.instance_id == str(0x53DA1FDDC446718)
    assert (decode.transport, decode.endpoints, decode.device_type) == ("tcp", ["generate"], "cuda")
    assert decode.address == "127.0.0.1:43653/53da1fddc446718/dynamo/backend/generate"
    model = decode.models[0]
    assert (model.name, model.model_type, model.model_input, model.needs) == (
        "tiny", "Chat | Completions", "Tokens", ["prefill"],
    )  # fmt: skip
    # The engine has no limit of its own here (0), so the model's limit counts.
    assert (model.context_length, model.max_kv_tokens) == (2048, 512 * 16)
    assert (model.max_num_seqs, model.max_num_batched_tokens, model.data_parallel_size) == (256, 8192, 1)
    prefill = next(worker for worker in observed.workers.values() if worker.role == "prefill")
    assert prefill.endpoints == ["generate", "worker_kv_query_source_8d2bcbf60c781"]
    assert prefill.models[0].needs == ["decode"]
    assert not observed.damaged


def test_records_of_other_kinds_are_ignored():
    for key in recorded("etcd-1.6.1.json"):
        if "event_" in key:
            assert parse(key, b"{}") is None
    assert parse("v1/dyn/planner/num_prefill_workers", b"3") is None


def endpoint_of(key: str, content: object) -> EndpointRecord:
    record = parse(key, json.dumps(content).encode())
    assert isinstance(record, EndpointRecord)
    return record


@pytest.mark.parametrize(
    ("key", "identity"),
    [
        ("v1/instances/dyn/backend/generate/2a", ("dyn", "backend", "generate", 42)),
        ("instances/dyn/backend/generate:2a", ("dyn", "backend", "generate", 42)),
        ("v1/instances/a%2Db/back%2Fend/generate/ffffffffffffffff", ("a-b", "back/end", "generate", 2**64 - 1)),
    ],
)
def test_the_key_of_a_record_gives_its_identity(key, identity):
    assert endpoint_of(key, {"instance_id": 7}).identity == identity


@pytest.mark.parametrize(
    ("transport", "reported"),
    [
        ({"tcp": "h:1/x"}, ("tcp", "h:1/x")),
        ({"nats_tcp": "dyn.backend"}, ("nats", "dyn.backend")),
        ({"NatsTcp": "dyn.backend"}, ("nats", "dyn.backend")),
        ({"http": {"url": "http://h:1"}}, ("http", "http://h:1")),
        ({"quic": "h:1"}, ("quic", "h:1")),
        ("tcp", ("tcp", "")),
        ({"tcp": 3}, ("tcp", "")),
        ({"a": 1, "b": 2}, ("", "")),
        (None, ("", "")),
    ],
)
def test_transports(transport, reported):
    record = endpoint_of("v1/instances/d/c/e/1", {"transport": transport})
    assert (record.transport, record.address) == reported


@pytest.mark.parametrize(
    "key",
    ["v1/instances/d/c/e", "v1/instances/d/c/e/xyz", "v1/instances/d/c/e/-1", "v1/instances/d/c/e/1_0", "v1/mdc/d//e/1",
     "v1/instances/d/c/e/10000000000000000", "v1/instances/d/c/e/1/slug/more", "v1/mdc/", "v1/instances/" + "x" * 300 + "/c/e/1",
     "v1/instances/" + "\N{GRINNING FACE}" * 250 + "/c/e/1", "v1/instances/d\udcff/c/e/1", "v1/instances/d%0A/c/e/1"],
)  # fmt: skip
def test_invalid_keys_are_unreadable(key):
    with pytest.raises(UnreadableError):
        parse(key, b"{}")


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"\xff", b" " * (256 * 1024 + 1), b'{"x": ' + b"[" * 100_000])
def test_an_unreadable_value_still_gives_the_identity_of_its_key(value):
    key, _ = instance(42)
    record = parse(key, value)
    assert isinstance(record, EndpointRecord)
    assert record.damaged
    assert record.identity.worker == "dyn/backend/2a"
    assert parse(card(42)[0], value) == CardRecord(record.identity, None)


def card_in(**content: object):
    record = parse("v1/mdc/d/c/e/1", json.dumps({"card_json": content}).encode())
    assert isinstance(record, CardRecord)
    return record.card


def test_a_prefill_worker_of_a_release_without_worker_types_is_known_by_its_model_type():
    reported = card_in(display_name="m", model_type="Prefill")
    assert (reported.worker_type, reported.needs) == ("prefill", ["decode"])
    assert card_in(display_name="m", model_type="Chat").worker_type == ""


@pytest.mark.parametrize(
    ("needs", "reported"),
    [
        ([["prefill"]], ["prefill"]),
        ([["Prefill", "decode"], ["aggregated"]], ["aggregated", "decode+prefill"]),
        ([[]], []),
        ([], []),
        (["decode"], ["decode"]),
        ("decode", []),
        ([[7]], []),
        ([["decode", "encode", "prefill", "x", "y"]], ["decode+encode+prefill+x"]),
    ],
)
def test_needs(needs, reported):
    assert card_in(display_name="m", worker_type="decode", needs=needs).needs == reported


def test_invalid_numbers_are_unknown():
    engine = {"total_kv_blocks": 2**40, "max_num_seqs": "8"}
    reported = card_in(display_name="m", context_length=-1, kv_cache_block_size=True, runtime_config=engine)
    assert (reported.context_length, reported.kv_cache_block_size, reported.total_kv_blocks, reported.max_num_seqs) == (
        0,
        0,
        0,
        0,
    )


def test_cards_as_text_and_cards_without_a_name():
    record = parse("v1/mdc/d/c/e/1", json.dumps({"card_json": json.dumps({"display_name": "m"})}).encode())
    assert isinstance(record, CardRecord)
    assert record.card is not None
    assert record.card.name == "m"
    assert card_in(context_length=3) is None
    assert card_in(display_name="x" * 300) is None


def test_hostile_texts_are_ignored():
    assert card_in(display_name="\N{GRINNING FACE}" * 250) is None
    result = card_in(display_name="m", worker_type="d\N{LATIN SMALL LETTER E WITH ACUTE}code", model_type="x" * 254)
    assert result is not None
    assert (result.worker_type, result.model_type) == ("", "")
    deep = json.dumps({"card_json": '{"x": ' + "[" * 5000}).encode()
    assert parse("v1/mdc/d/c/e/1", deep) == CardRecord(EndpointIdentity("d", "c", "e", 1), None)


def test_an_adapter_is_known_by_its_key_and_belongs_to_the_only_model():
    base, adapter = card(1, "llama", worker_type="aggregated"), card(1, adapter="support", worker_type="aggregated")
    observed = workers(dict([instance(1), base, adapter]))
    models = next(iter(observed.workers.values())).models
    assert [(model.name, model.lora, model.base_model) for model in models] == [
        ("llama", False, ""), ("support", True, "llama"),
    ]  # fmt: skip


@given(st.text(max_size=60), st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_content_of_etcd_stops_the_reader(rest, value):
    table = RecordTable("etcd")
    for kind in ("instances", "mdc"):
        table.take({f"v1/{kind}/{rest}": value, f"v1/{kind}/d/c/e/1": value})
    assert table.unreadable <= 4


FIELDS = ["display_name", "runtime_config", "needs", "lora", "user_data", "model_type", "worker_type", "x"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=8,
)


@given(JSON, JSON)
def test_no_content_of_a_value_hides_the_worker_of_its_key(transport, content):
    key, _ = instance(1)
    observed = workers({
        key: json.dumps({"transport": transport, "device_type": transport}).encode(),
        "v1/mdc/dyn/backend/generate/1": json.dumps({"card_json": content}).encode(),
    })  # fmt: skip
    assert [worker.name for worker in observed.workers.values()] == ["dyn/backend/1"]
