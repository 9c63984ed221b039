"""Whatever the order of observations, the workers converge, and the events alone give the same workers."""

from collections.abc import Mapping
from typing import Any

from dynamo_model_discovery.workers.assembly import assemble
from dynamo_model_discovery.workers.differences import DiscoveryView, StateChange, changes
from dynamo_model_discovery.workers.retention import Unobserved, settle
from dynamo_model_discovery.workers.served_models import served
from dynamo_model_discovery.workers.sources.base import RecordTable
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.wire.discovered import WORKERS
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.model_discovery.worker_building import Stamp, card, instance, worker, workers

TYPES = ("aggregated", "prefill", "decode", "")
NUMBERS = st.integers(1, 4)
RECORDS = st.one_of(
    st.builds(instance, NUMBERS, endpoint=st.sampled_from(["generate", "other"]), device_type=st.sampled_from(["cuda", "cpu"])),
    st.builds(
        card, NUMBERS, model=st.sampled_from(["m", "n"]), adapter=st.sampled_from(["", "a"]),
        worker_type=st.sampled_from(TYPES), needs=st.sampled_from([[], [["prefill"]], [["decode"]]]),
    ),
)  # fmt: skip
PUT, DELETE, REREAD, POLL, RESTART = "put", "delete", "reread", "poll", "restart"
NEWS = st.lists(st.tuples(st.sampled_from([PUT, PUT, PUT, DELETE, REREAD, POLL, RESTART]), RECORDS), max_size=40)


class Subscriber:
    """A subscriber that knows only the events."""

    def __init__(self) -> None:
        self.workers: dict[ObjectKey, Any] = {}
        self.models: set[ObjectKey] = set()

    def take(self, step: StateChange) -> None:
        if step.resource == WORKERS:
            assert (step.key in self.workers) == (step.event != "joined"), "joins once, leaves once"
            if step.event == "left":
                del self.workers[step.key]
            else:
                self.workers[step.key] = step.event_data
        elif step.event:
            assert (step.key in self.models) == (step.event == "gone")
            assert step.event_data.available == (step.event == "available")  # type: ignore[union-attr]
            self.models ^= {step.key}


class Discovery:
    """The service without its shell. `etcd` is the truth, and the service may observe it late."""

    def __init__(self) -> None:
        self.etcd: dict[str, bytes] = {}
        self.heard: dict[str, bytes] = {}
        self.table = RecordTable("etcd")
        self.view, self.stamp, self.subscriber = DiscoveryView(), Stamp(), Subscriber()

    def hear(self, changed: Mapping[str, bytes | None]) -> None:
        for key, value in changed.items():
            if value is None:
                self.heard.pop(key, None)
            else:
                self.heard[key] = value
        self.table.take(changed)

    def reread(self) -> None:
        gone: dict[str, bytes | None] = dict.fromkeys(self.heard.keys() - self.etcd.keys())
        self.hear(gone | self.etcd)

    def poll(self) -> None:
        published = {key: entry.data for key, entry in self.view.workers.items()}
        observed = settle(published, assemble(self.table.records(), {}), Unobserved())
        for step in changes(self.view, observed, self.stamp):
            self.subscriber.take(step)
            self.view.apply(step)

    def restart(self) -> None:
        """Read the view from STATE, and etcd again."""
        self.table, self.heard = RecordTable("etcd"), {}
        self.reread()


@examples(30)
@given(NEWS, st.sets(st.integers(0, 39)))
def test_observations_in_any_order_converge_and_events_give_the_same_workers(news, unheard):
    discovery = Discovery()
    for number, (what, (key, value)) in enumerate(news):
        heard = number not in unheard
        if what == PUT:
            discovery.etcd[key] = value
            if heard:
                discovery.hear({key: value})
        elif what == DELETE:
            discovery.etcd.pop(key, None)
            if heard:
                discovery.hear({key: None})
        else:
            {REREAD: discovery.reread, POLL: discovery.poll, RESTART: discovery.restart}[what]()
    discovery.reread()
    discovery.poll()
    expected = workers(discovery.etcd).workers
    assert {key: entry.data for key, entry in discovery.view.workers.items()} == expected
    assert discovery.subscriber.workers == expected
    models = served(expected.values())
    assert {key: entry.data for key, entry in discovery.view.models.items()} == models
    assert discovery.subscriber.models == {key for key, model in models.items() if model.available}


@given(NEWS)
def test_a_restart_reports_nothing(news):
    discovery = Discovery()
    for _, (key, value) in news:
        discovery.etcd[key] = value
    discovery.reread()
    discovery.poll()
    published = {key: entry.data for key, entry in discovery.view.workers.items()}
    # Before etcd has been read, no worker is known and none has left.
    unread = settle(published, assemble((), {}), Unobserved(sources=frozenset({"etcd"})))
    assert changes(discovery.view, unread, discovery.stamp) == []
    discovery.restart()
    observed = settle(published, assemble(discovery.table.records(), {}), Unobserved())
    assert changes(discovery.view, observed, discovery.stamp) == []


def test_a_worker_that_returns_is_a_new_worker():
    view, stamp, key = DiscoveryView(), Stamp(), ObjectKey("team", "d/c/1")
    uids = []
    for _ in range(2):
        (step,) = changes(view, {key: worker("d/c/1")}, stamp)
        uids.append(step.entry.uid)
        view.apply(step)
        (step,) = changes(view, {}, stamp)
        assert (step.event, step.entry.uid, step.removed) == ("left", uids[-1], True)
        view.apply(step)
    assert uids[0] != uids[1]


def test_a_change_keeps_the_uid_and_raises_the_version():
    view, stamp, key = DiscoveryView(), Stamp(), ObjectKey("team", "d/c/1")
    (joined,) = changes(view, {key: worker("d/c/1")}, stamp)
    view.apply(joined)
    (changed,) = changes(view, {key: worker("d/c/1", role="decode")}, stamp)
    assert (changed.event, changed.entry.uid, changed.entry.generation) == ("changed", joined.entry.uid, 2)
    assert changed.entry.version > joined.entry.version
