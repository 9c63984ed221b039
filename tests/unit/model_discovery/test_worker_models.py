"""When a model is available, by the frontend's rules."""

import pytest
from dynamo_model_discovery.workers.served_models import served
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.wire.discovered import ModelCard

from tests.unit.model_discovery.worker_building import worker


def of(type_: str, *needs: str, name: str = "m", **fields):
    return ModelCard(name=name, worker_type=type_, needs=list(needs), **fields)


PREFILL = of("prefill", "decode")
DECODE = of("decode", "prefill", model_type="Chat")


@pytest.mark.parametrize(
    ("cards", "missing"),
    [
        ([of("aggregated")], []),
        ([PREFILL, DECODE], []),
        ([PREFILL, PREFILL, DECODE], []),
        ([DECODE], ["prefill"]),
        ([PREFILL], ["decode"]),
        ([of("encode", "decode+prefill", "aggregated"), of("aggregated")], []),
        ([of("encode", "decode+prefill", "aggregated"), of("prefill"), of("decode")], []),
        ([of("encode", "decode+prefill", "aggregated"), of("prefill")], ["aggregated", "decode"]),
        ([of("aggregated"), PREFILL], ["decode"]),
        # Cards of a release without worker types: the missing types are unknown.
        ([of("")], []),
        ([of(""), DECODE], []),
    ],
)
def test_a_model_is_available_when_the_needs_of_each_worker_are_met(cards, missing):
    models = served(
        worker(f"d/c/{number:x}", each, role=each.worker_type or "aggregated") for number, each in enumerate(cards)
    )
    model = models[ObjectKey("team", "d/m")]
    assert (model.available, model.missing) == (not missing, missing)
    assert sum(model.workers.values()) == len(cards)


def test_workers_of_different_dynamo_namespaces_never_serve_together():
    """Each generation of a graph has a Dynamo namespace of its own."""
    models = served([worker("old/c/1", PREFILL), worker("new/c/2", DECODE)])
    assert [(model.name, model.missing) for model in models.values()] == [("old/m", ["decode"]), ("new/m", ["prefill"])]
    models = served([worker("d/c/1", PREFILL, namespace="a"), worker("d/c/2", DECODE, namespace="b")])
    assert not any(model.available for model in models.values())


def test_an_adapter_has_the_partners_of_its_model():
    adapter = of("decode", "prefill", name="support", lora=True, base_model="m", model_type="Chat")
    models = served([worker("d/c/1", PREFILL), worker("d/c/2", DECODE, adapter)])
    result = models[ObjectKey("team", "d/support")]
    assert (result.available, result.lora, result.base_model, result.workers) == (True, True, "m", {"decode": 1})
    alone = served([worker("d/c/2", DECODE, adapter)])
    assert alone[ObjectKey("team", "d/support")].missing == ["prefill"]


def test_unknown_worker_types_are_reported_only_up_to_a_limit():
    cards = [of(f"type-{number}", f"need-{number}") for number in range(100)]
    model = served(worker(f"d/c/{number:x}", each) for number, each in enumerate(cards))[ObjectKey("team", "d/m")]
    assert not model.available
    assert (len(model.missing), len(model.workers)) == (32, 32)


def test_a_model_has_the_limits_of_its_smallest_worker():
    first, second = of("aggregated", context_length=4096), of("aggregated", context_length=2048)
    unknown = of("aggregated")
    models = served([worker("d/c/1", first), worker("d/c/2", second), worker("d/c/3", unknown, graph_deployment="g")])
    model = models[ObjectKey("team", "d/m")]
    assert (model.context_length, model.workers, model.graph_deployment) == (2048, {"aggregated": 3}, "g")
