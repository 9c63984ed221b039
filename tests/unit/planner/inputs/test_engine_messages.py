"""Engine reports on the runtime's NATS."""

import math

import msgspec
import pytest
from dynamo_planner.core.observation import EngineWork, ForwardPass, Missing, Pool
from dynamo_planner.inputs import InputError, InputUnavailable
from dynamo_planner.inputs import forward_passes as module
from dynamo_planner.inputs.forward_passes import ForwardPasses, component_of, pool_of, subject
from dynamo_shared.api.contracts.planner import Mode
from hypothesis import given
from hypothesis import strategies as st

from tests.building.clock import ManualClock

PREFILL = "namespace.ns-a.component.prefill.endpoint.generate.forward-pass-metrics"
BACKEND = "namespace.ns-a.component.backend.endpoint.generate.forward-pass-metrics"


def message(worker="w1", rank=0, wall=0.02, publisher=1, **changes):
    reported = {
        "version": 1,
        "worker_id": worker,
        "dp_rank": rank,
        "counter_id": 7,
        "wall_time": wall,
        "scheduled_requests": {
            "num_prefill_requests": 1,
            "sum_prefill_tokens": 900,
            "var_prefill_length": 0.0,
            "sum_prefill_kv_tokens": 16,
            "num_decode_requests": 3,
            "sum_decode_kv_tokens": 3000,
            "var_decode_kv_tokens": 2.5,
        },
        "queued_requests": {"num_prefill_requests": 2, "sum_prefill_tokens": 1800, "num_decode_requests": 0},
        **changes,
    }
    envelope = {"publisher_id": publisher, "sequence": 2, "published_at": 3, "topic": "forward-pass-metrics"}
    return msgspec.msgpack.encode({**envelope, "payload": msgspec.msgpack.encode(reported)})


@pytest.fixture
def clock():
    return ManualClock(100.0)


@pytest.fixture
def passes(clock):
    return ForwardPasses(Mode.DISAGG, clock)


def test_a_message_is_read(passes):
    passes.take(PREFILL, message(wall=0.5))
    assert passes.read() == (
        ForwardPass(
            pool=Pool.PREFILL,
            worker_id="w1",
            wall_time=0.5,
            scheduled=EngineWork(
                num_prefill_requests=1, sum_prefill_tokens=900, num_decode_requests=3, sum_decode_kv_tokens=3000
            ),
            queued=EngineWork(num_prefill_requests=2, sum_prefill_tokens=1800),
        ),
    )


def test_the_newest_message_of_each_rank_counts(passes):
    for worker, rank, wall in (("a", 0, 1.0), ("a", 1, 2.0), ("b", 0, 3.0), ("a", 0, 4.0), ("idle", 0, 0.0)):
        passes.take(BACKEND, message(worker, rank, wall))
    assert [(each.worker_id, each.dp_rank, each.wall_time) for each in passes.read()] == [
        ("a", 0, 4.0),
        ("a", 1, 2.0),
        ("b", 0, 3.0),
        ("idle", 0, 0.0),
    ]


def test_engines_without_a_worker_id_are_distinguished_by_their_publisher(passes):
    """vLLM has none after a restore from a snapshot: all such engines counted as one."""
    for publisher in (2**63 + 1, 7, 7):
        passes.take(BACKEND, message("", publisher=publisher))
    assert [each.worker_id for each in passes.read()] == ["7", str(2**63 + 1)]


def test_a_silent_engine_is_forgotten(passes, clock):
    passes.take(BACKEND, message("gone"))
    clock.now += 8
    passes.take(BACKEND, message("here"))
    clock.now += 5
    assert [each.worker_id for each in passes.read()] == ["here"]


def test_silence_of_all_engines_is_reported_and_then_the_lack_of_engines(passes, clock):
    assert passes.read().why is Missing.NO_FORWARD_PASSES
    passes.take(BACKEND, message())
    clock.now += 11
    outcome = passes.read()
    assert isinstance(outcome, InputUnavailable)
    assert outcome.why is Missing.STALE


@pytest.mark.parametrize(
    ("reported_on", "payload", "reason"),
    [
        (BACKEND, b"\xc1", "unreadable"),
        (BACKEND, msgspec.msgpack.encode({"payload": b"no"}), "unreadable"),
        (BACKEND, message("w" * 300), "unreadable"),
        # Fields that are not read are still decoded.
        (BACKEND, b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0", "unreadable"),
        (BACKEND, msgspec.msgpack.encode({"payload": b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0"}), "unreadable"),
        (BACKEND, message(version=2), "version"),
        (BACKEND, message(wall=math.nan), "wall_time"),
        (BACKEND, message(wall=-1.0), "wall_time"),
        (BACKEND, message(wall=1e-300), "wall_time"),
        (BACKEND, message(wall=1e300), "wall_time"),
        (BACKEND, message(queued_requests={"sum_prefill_tokens": -1}), "negative"),
        (BACKEND, message(scheduled_requests={"num_decode_requests": -3}), "negative"),
        (BACKEND, message(worker_id=None), "unreadable"),
        # A policy that computes with it fails, and must learn again.
        (BACKEND, message(queued_requests={"sum_prefill_tokens": "9" * 400}), "too_large"),
        (BACKEND, message(dp_rank="9" * 400), "too_large"),
        ("forward-pass-metrics", message(), "subject"),
        (BACKEND.replace("backend", "frontend"), message(), "component"),
    ],
)
def test_invalid_messages_are_counted(passes, reported_on, payload, reason):
    passes.take(reported_on, payload)
    outcome = passes.read()
    assert isinstance(outcome, InputUnavailable)
    assert passes.ignored == {reason: 1}
    assert reason in outcome.message


@given(st.binary(max_size=200))
def test_no_bytes_raise(payload):
    ForwardPasses(Mode.AGG, lambda: 0.0).take(BACKEND, payload)


def test_the_number_of_engines_is_bounded(monkeypatch, passes, clock):
    monkeypatch.setattr(module, "MOST_ENGINES", 2)
    for worker in ("a", "b", "c", "a"):
        passes.take(BACKEND, message(worker))
    assert passes.ignored == {"too_many": 1}
    clock.now += 11
    passes.take(BACKEND, message("c"))
    assert [each.worker_id for each in passes.read()] == ["c"]


def test_silent_engines_are_searched_once_a_second_however_many_messages_are_too_many(monkeypatch, passes, clock):
    """A tenant's workers can send thousands a second, and each search takes a third of a millisecond."""
    monkeypatch.setattr(module, "MOST_ENGINES", 2)
    searched = []
    forget = passes._forget_silent

    def recorded():
        searched.append(clock.now)
        forget()

    monkeypatch.setattr(passes, "_forget_silent", recorded)
    for worker in range(5):
        passes.take(BACKEND, message(f"w{worker}"))
    clock.now += 1
    passes.take(BACKEND, message("w5"))
    assert searched == [100.0, 101.0]
    assert passes.ignored == {"too_many": 4}


@pytest.mark.parametrize(
    ("component", "mode", "pool"),
    [
        ("prefill", Mode.DISAGG, Pool.PREFILL),
        ("backend", Mode.DISAGG, Pool.DECODE),
        ("tensorrt_llm", Mode.AGG, Pool.DECODE),
        ("backend", Mode.PREFILL, None),
        ("prefill", Mode.DECODE, None),
        ("prefill", Mode.AGG, None),
        ("frontend", Mode.AGG, None),
    ],
)
def test_components_are_pools_according_to_the_mode(component, mode, pool):
    assert pool_of(component, mode) is pool


def test_other_components_are_pools_if_the_configuration_says_so(clock):
    passes = ForwardPasses(Mode.DECODE, clock, pools={"mine": Pool.DECODE})
    passes.take(BACKEND.replace("backend", "mine"), message())
    reported = passes.read()
    assert isinstance(reported, tuple)
    assert reported[0].pool is Pool.DECODE


def test_subjects():
    assert subject("ns-a") == "namespace.ns-a.component.*.endpoint.*.forward-pass-metrics"
    assert component_of(PREFILL) == "prefill"


@pytest.mark.parametrize("namespace", ["*", "a.>", "a b", "", "a..b", ".a", "a\r\n"])
def test_a_graph_does_not_receive_messages_of_other_engines(namespace):
    with pytest.raises(InputError, match="not a valid Dynamo namespace"):
        subject(namespace)
