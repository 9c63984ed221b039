"""`make bench-rows`: the cost of the watcher's two rows of each object, without a server.

`known_bytes` and `ledger_bytes`: a row of the reflector's known objects, and a row of the ledger of STATE. `*_us`:
processor time of a write and a read of each; in the ledger including the subject.
"""

import argparse
import time
import tracemalloc
import uuid
from collections.abc import Callable

from dynamo_shared.api.resources import DEPLOYMENTS, ObjectKey
from dynamo_shared.kube.reported_versions import ReportedVersions
from dynamo_shared.state.publisher.ledger import LastMessage, Ledger
from dynamo_shared.state.versions import Version
from dynamo_shared.wire.subjects import state_subject

A_NAMESPACE = 300
CREATED = "2026-01-01T00:00:00Z"


def run(count: int) -> str:
    """Measure, and return the line."""
    keys = [
        ObjectKey(f"tenant-{each // A_NAMESPACE:03}", f"graph-{each:05}-decodeworker-5d8f7c9b6")
        for each in range(count)
    ]
    versions = [Version(str(uuid.uuid4()), 100_000 + 3 * each, CREATED) for each in range(count)]
    known, ledger = ReportedVersions(), Ledger()

    def remember() -> None:
        for key, (uid, version, _) in zip(keys, versions, strict=True):
            known.remember(key, uid, str(version))

    def write() -> None:
        # Each write has its own subject string, because a dict would keep it.
        for sequence, (key, version) in enumerate(zip(keys, versions, strict=True), 1):
            subject = state_subject("default", DEPLOYMENTS.id, key)
            ledger.set(DEPLOYMENTS.id, subject, LastMessage(sequence, version, deleted=False))

    figures = [f"known_bytes={_bytes(remember) / count:.0f}", f"ledger_bytes={_bytes(write) / count:.0f}"]
    for label, work in (
        ("known_set_us", remember),
        ("known_get_us", lambda: [known.get(key) for key in keys]),
        ("ledger_set_us", write),
        (
            "ledger_get_us",
            lambda: [ledger.get(DEPLOYMENTS, state_subject("default", DEPLOYMENTS.id, key)) for key in keys],
        ),
    ):
        started = time.process_time()
        work()
        figures.append(f"{label}={(time.process_time() - started) / count * 1e6:.1f}")
    return " ".join([*figures, f"objects={count}"])


def _bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=30_000, help="objects")
    print(run(parser.parse_args().n))
