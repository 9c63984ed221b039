"""One model on one worker: the worker converges to the desired adapter, whatever fails on the way."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from dynamo_model_discovery.lora.adapter import Adapter, AdapterRecord, advanced
from dynamo_model_discovery.lora.adapter_state import AdapterState
from dynamo_model_discovery.lora.api import Listing, WorkerApi
from dynamo_model_discovery.lora.responses import LoraError
from dynamo_model_discovery.lora.settle import RELOAD_AFTER, settle
from dynamo_model_discovery.metrics import LoraMetrics
from dynamo_model_discovery.models.workers import Worker
from dynamo_shared.api.resources import ObjectKey
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

WORKER = Worker("pod", "uid", "http://10.0.0.1:9090", "main:0")
ADAPTERS = (Adapter("a", "s3://1"), Adapter("a", "s3://2"), Adapter("b", "s3://1"))


@dataclass
class FakeApi(WorkerApi):
    """A worker like Dynamo's: a loaded adapter stays unchanged, and an unload waits for a load in progress."""

    loras: dict[str, str] = field(default_factory=dict)
    under_way: list[Adapter] = field(default_factory=list)
    #: How the next requests end: ok, refused (no effect), lost (takes effect), late (takes effect later).
    modes: list[str] = field(default_factory=list)
    during: list[Callable[[], None]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    #: Whether it publishes the cards of loaded adapters; None if it does not say.
    publishing: bool | None = True
    #: How often its cards were requested, and a hook that runs meanwhile.
    cards: int = 0
    meanwhile: Callable[[], None] = lambda: None

    async def listing(self, url: str) -> Listing:
        self._next("GET")
        return Listing(frozenset(self.loras), "/v1/loras")

    async def publishes(self, url: str, name: str) -> bool | None:
        self.cards += 1
        self.meanwhile()
        return self.publishing

    async def load(self, url: str, path: str | None, adapter: Adapter) -> None:
        mode = self._next("POST")
        if mode == "late":
            self.under_way.append(adapter)
            raise LoraError("no answer", unanswered=True)
        self.loras.setdefault(adapter.name, adapter.uri)
        if mode == "lost":
            raise LoraError("no answer", unanswered=True)

    async def unload(self, url: str, path: str | None, name: str) -> bool:
        mode = self._next("DELETE")
        self.finish()
        result = self.loras.pop(name, None)
        if mode in ("lost", "late"):
            raise LoraError("no answer", unanswered=True)
        return result is not None

    def finish(self) -> None:
        for adapter in self.under_way:
            self.loras.setdefault(adapter.name, adapter.uri)
        self.under_way.clear()

    def _next(self, call: str) -> str:
        self.calls.append(call)
        if self.during:
            self.during.pop(0)()
        mode = self.modes.pop(0) if self.modes else "ok"
        if mode == "refused":
            raise LoraError("HTTP 500: no")
        return mode


def new_state(
    adapter: Adapter | None = ADAPTERS[0], stale: set[str] | None = None, worker: Worker = WORKER
) -> AdapterState:
    return AdapterState(ObjectKey("prod", "m"), worker, adapter, stale or set())


def run(state: AdapterState, api: FakeApi) -> None:
    version = state.version
    try:
        asyncio.run(settle(api, state, lambda: 0.0))
    except LoraError as error:
        state.failed(str(error), version)


def test_a_missing_adapter_is_loaded_and_confirmed():
    api, state = FakeApi(), new_state()
    run(state, api)
    assert api.calls == ["GET", "POST", "GET"]
    assert state.settled
    assert state.loaded


def test_a_loaded_adapter_is_not_loaded_again():
    api, state = FakeApi(loras={"a": "s3://1", "mine": "s3://user"}), new_state()
    run(state, api)
    assert api.calls == ["GET"]
    assert state.loaded
    assert "mine" in api.loras


def test_a_load_counts_only_if_the_worker_lists_the_adapter():
    class Liar(FakeApi):
        async def load(self, url: str, path: str | None, adapter: Adapter) -> None:
            self.calls.append("POST")

    state = new_state()
    with pytest.raises(LoraError, match="accepted the adapter, but does not list it"):
        asyncio.run(settle(Liar(), state, lambda: 0.0))
    assert not state.loaded


def test_an_adapter_of_unknown_source_is_replaced():
    api, state = FakeApi(loras={"a": "s3://0"}), new_state(stale={"a"})
    run(state, api)
    assert api.loras == {"a": "s3://1"}


def test_an_unanswered_load_is_unloaded_even_if_it_is_not_listed():
    api, state = FakeApi(modes=["ok", "late"]), new_state()
    run(state, api)
    assert not state.settled
    assert state.set_desired(WORKER, None, ("a",))
    run(state, api)
    assert state.settled
    assert not api.loras
    assert not api.under_way


def test_a_load_of_an_earlier_process_is_unloaded_even_if_it_is_not_listed():
    api = FakeApi(under_way=[ADAPTERS[0]])
    state = AdapterState.unknown(ObjectKey("prod", "m"), WORKER, None, ("a",))
    run(state, api)
    assert state.settled
    assert not api.loras
    assert not api.under_way


@pytest.mark.parametrize(
    ("api", "before", "now"),
    [
        (FakeApi(loras={"a": "s3://1"}), ADAPTERS[0], ADAPTERS[1]),
        (FakeApi(under_way=[ADAPTERS[2]]), ADAPTERS[2], ADAPTERS[0]),
    ],
    ids=["loaded", "under way"],
)
def test_a_load_of_an_earlier_process_is_replaced_by_the_desired_adapter(api: FakeApi, before: Adapter, now: Adapter):
    state = AdapterState.unknown(ObjectKey("prod", "m"), WORKER, before, ())
    assert state.set_desired(WORKER, now, (before.name,))
    run(state, api)
    api.finish()
    assert state.settled
    assert api.loras == {now.name: now.uri}


def test_a_worker_that_is_not_ready_loads_nothing_but_may_unload():
    away = replace(WORKER, ready=False)
    assert new_state(worker=away).idle
    assert not new_state(None, worker=away).idle
    state = new_state()
    assert not state.set_desired(away, ADAPTERS[0], ())
    assert state.set_desired(WORKER, ADAPTERS[0], ())
    assert not state.loaded


def test_setting_the_same_adapter_again_needs_no_work():
    api, state = FakeApi(), new_state()
    run(state, api)
    assert not state.set_desired(WORKER, ADAPTERS[0], ("a", "old"))
    assert state.settled
    assert state.set_desired(WORKER, None, ("a", "old"))
    run(state, api)
    assert not state.set_desired(WORKER, None, ("a", "old"))
    assert state.settled


@pytest.mark.parametrize(
    ("debts", "taken", "left"),
    [
        pytest.param([], False, [], id="no one owes it"),
        pytest.param([(False, {"b"})], False, [{"b"}], id="another name is owed"),
        pytest.param([(True, {"a"})], False, [{"a"}], id="its unloading is under way"),
        pytest.param([(False, {"a", "b"})], True, [{"b"}], id="it is owed"),
        pytest.param([(True, {"a"}), (False, {"a"})], True, [{"a"}, set()], id="one of two is under way"),
        pytest.param([(False, {"a"}), (False, {"a"})], True, [set(), {"a"}], id="one at a time"),
    ],
)
def test_a_model_that_loads_a_name_takes_over_its_pending_unloads(
    debts: list[tuple[bool, set[str]]], taken: bool, left: list[set[str]]
):
    state = new_state()
    owing = [replace(new_state(None), busy=busy, stale=set(names), unanswered=set(names)) for busy, names in debts]
    version = state.version
    assert state.take_over([debt for debt in owing if state.waits_for(debt)]) is taken
    assert [debt.stale for debt in owing] == left
    assert (state.version > version) is taken
    assert "a" in state.stale or not taken


def test_each_event_is_reported_once():
    state = new_state()
    assert state.failed("HTTP 500", state.version)
    assert not state.failed("HTTP 500", state.version)
    assert state.failed("no answer", state.version)
    assert state.failures == 3


def test_a_loaded_adapter_counts_until_its_worker_fails_twice():
    api, state = FakeApi(), new_state()
    run(state, api)
    api.modes = ["refused"]
    run(state, api)
    assert state.loaded, "one request without an answer says nothing about it"
    assert (state.failure, state.failures) == ("", 1)
    registry = CollectorRegistry()
    LoraMetrics(registry).counted([state])
    assert registry.get_sample_value("dynamo_model_discovery_adapters", {"state": "loaded"}) == 1
    run(state, api)
    assert (state.loaded, state.failures) == (True, 0)
    api.modes = ["refused", "refused"]
    run(state, api)
    run(state, api)
    assert (state.loaded, state.failure) == (False, "HTTP 500: no")


def test_a_lost_adapter_counts_again_when_the_worker_lists_it_again():
    api, state = FakeApi(), new_state()
    run(state, api)
    api.loras.clear()
    counted: list[bool] = []
    api.during = [lambda: None, lambda: None, lambda: counted.append(state.loaded)]
    api.modes = ["ok", "ok", "refused"]
    for _ in range(2):
        run(state, api)
    assert (counted, state.loaded, state.failure) == ([False], False, "HTTP 500: no"), (
        "its load takes a while, and fails"
    )
    run(state, api)
    assert state.loaded


@pytest.mark.parametrize("now", [ADAPTERS[1], None], ids=["another source", "unload"])
def test_failures_are_counted_for_the_desired_adapter_only(now: Adapter | None):
    state = new_state()
    for _ in range(10):
        state.failed("HTTP 500: no such bucket", state.version)
    before = state.version
    assert state.set_desired(WORKER, now, ("a",))
    assert state.failure == ""
    assert state.failures == 1, "its next pause is short, and it waits among those that failed last time"
    assert not state.failed("HTTP 500: no such bucket", before), "it was under way"
    assert (state.failure, state.failures) == ("", 1)
    assert state.failed("HTTP 500: no such bucket", state.version), "of this one, too"


def test_nothing_is_loaded_on_a_worker_without_lora_support():
    class WithoutLora(FakeApi):
        async def listing(self, url: str) -> Listing:
            self.calls.append("GET")
            raise LoraError("none of /v1/loras, /loras, /v1/models", outcome="absent")

    api, state = WithoutLora(), AdapterState.unknown(ObjectKey("prod", "m"), WORKER, ADAPTERS[0], ("a",))
    run(state, api)
    assert state.failure
    assert state.set_desired(WORKER, None, ("a",))
    run(state, api)
    assert state.settled, "its model need not wait for it"
    assert api.calls == ["GET", "GET"]


def test_an_adapter_that_frontends_cannot_discover_is_not_loaded():
    """https://github.com/ai-dynamo/dynamo/issues/11163: the engine has the adapter, but never published its card."""
    api, state = FakeApi(publishing=False), new_state()
    run(state, api)
    assert not state.loaded
    assert "published no model card" in state.failure
    api.publishing = True
    run(state, api)
    assert (state.loaded, state.failures) == (True, 0)
    run(state, api)
    assert api.cards == 2, "what is published once is not asked for again"
    assert api.calls.count("POST") == 1
    state.set_desired(replace(WORKER, incarnation="main:1"), ADAPTERS[0], ())
    run(state, api)
    assert api.cards == 3


def test_an_adapter_does_not_count_while_its_cards_are_requested():
    api, state = FakeApi(publishing=False), new_state()
    counted: list[bool] = []
    api.meanwhile = lambda: counted.append(state.loaded)
    for _ in range(2):
        run(state, api)
    assert counted == [False, False]


def test_a_reloaded_adapter_must_be_published_again():
    api, state = FakeApi(), new_state()
    run(state, api)
    api.loras.clear()
    api.publishing = False
    for _ in range(2):
        run(state, api)
    assert (state.loaded, api.cards) == (False, 2)


def test_an_unpublished_adapter_is_loaded_again():
    """Such a worker answers each further request with success, but publishes nothing."""
    api, state = FakeApi(publishing=False), new_state()
    for _ in range(RELOAD_AFTER):
        run(state, api)
    assert "DELETE" not in api.calls
    run(state, api)
    assert api.calls[-5:] == ["GET", "DELETE", "GET", "POST", "GET"]
    api.publishing = True
    run(state, api)
    assert state.settled
    assert api.loras == {"a": "s3://1"}


def test_a_worker_that_does_not_report_its_cards_is_asked_again_next_time():
    api, state = FakeApi(publishing=None), new_state()
    run(state, api)
    run(state, api)
    assert (state.loaded, api.cards) == (True, 2)


_DESIRED = st.sampled_from([*ADAPTERS, None])
_STEPS = st.one_of(
    st.tuples(st.just("desire"), _DESIRED),
    st.tuples(st.just("during"), _DESIRED),
    st.tuples(st.just("try"), st.lists(st.sampled_from(["ok", "refused", "lost", "late"]), max_size=5)),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("flap"), st.none()),
    st.tuples(st.just("finish"), st.none()),
    st.tuples(st.just("forget"), st.none()),
)


@given(st.lists(_STEPS, max_size=14), st.booleans())
def test_every_sequence_of_steps_converges_to_the_desired_adapter(steps: list[tuple[str, object]], user: bool):
    mine = {"user": "s3://user"} if user else {}
    api, state, restarts = FakeApi(loras=dict(mine)), new_state(), 0
    desired: Adapter | None = ADAPTERS[0]
    record: AdapterRecord | None = advanced(None, ADAPTERS[0])

    def stale() -> tuple[str, ...]:
        if record is None:
            return ()
        return record.names if desired is None else record.previous

    def set_desired(adapter: Adapter | None) -> None:
        nonlocal desired, record
        desired = adapter
        if adapter is not None:
            record = advanced(record, adapter)
        state.set_desired(state.worker, adapter, stale())

    def attempt() -> None:
        nonlocal record
        run(state, api)
        if record is not None and state.settled:
            record = None if desired is None else AdapterRecord(record.name, record.source)

    for step, what in steps:
        if step == "desire":
            set_desired(what)  # type: ignore[arg-type]
        elif step == "during":
            api.during.append(lambda what=what: set_desired(what))  # type: ignore[misc]
        elif step == "try":
            api.modes[:] = what  # type: ignore[call-overload]
            attempt()
            api.modes.clear()
        elif step == "restart":
            restarts += 1
            api.loras, api.under_way = dict(mine), []
            state.set_desired(replace(state.worker, incarnation=f"main:{restarts}"), desired, stale())
        elif step == "flap":
            state.set_desired(replace(state.worker, ready=False), desired, stale())
            state.set_desired(replace(state.worker, ready=True), desired, stale())
        elif step == "forget":
            # Another replica, or this one after a restart, knows only the record.
            state = AdapterState.unknown(state.model, state.worker, desired, stale())
        else:
            api.finish()
    api.during.clear()
    for _ in range(6):
        if state.settled:
            break
        attempt()
    assert state.settled
    api.finish()
    expected = {desired.name: desired.uri} if desired is not None else {}
    assert api.loras == {**mine, **expected}
