"""Progress as lines: counts, and the estimated remaining time."""

import io

from dynamo_devcluster.progress import LineProgress


def test_the_remaining_time_is_estimated_from_the_pace() -> None:
    now, stream = [0.0], io.StringIO()
    progress = LineProgress(stream, every=5.0, clock=lambda: now[0])
    progress.started("building")
    for at, done, total, unit in (
        (20.0, 1, 1, "modules downloaded"),
        (30.0, 0, 100, "packages compiled"),
        (32.0, 5, 100, "packages compiled"),
        (40.0, 20, 100, "packages compiled"),
        (50.0, 3, 0, "bytes"),
    ):
        now[0] = at
        progress.advanced("building", done, total, unit)
    progress.finished("building", 60.0)
    assert stream.getvalue().splitlines() == [
        "building ...",
        "building: modules downloaded 1/1, 20 s",
        "building: packages compiled 0/100, 30 s",
        "building: packages compiled 20/100, 40 s, about 40 s more",
        "building: bytes 3, 50 s",
        "building: done in 60.0 s",
    ]
