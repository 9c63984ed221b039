"""A worker process of dynadmin: it does what those of the profiler do, and replays of the planner.

`python -m dynamo_ctl.simulations.worker MEMORY_MIB NICENESS`, as the profiler's own (dynamo_profiler.profiling.simulation.child).
"""

import sys
from typing import Any

from dynamo_planner.replay.job import KIND, Replays
from dynamo_profiler.profiling.simulation import child
from dynamo_profiler.profiling.simulation.wire import JobResult, JobStatus

COMMAND = (sys.executable, "-m", "dynamo_ctl.simulations.worker")


def replayed(given: dict[str, Any], report: child.Report) -> JobResult:
    """A row for each configuration; INFEASIBLE where no request came at all."""
    # Half a second that sweeps do without.
    from dynamo_planner.replay.rows import replay  # noqa: PLC0415

    rows = replay(Replays(**given), report)
    if not rows:
        return JobResult(outcome=JobStatus.INFEASIBLE, message="no request came in this time")
    return JobResult(outcome=JobStatus.FEASIBLE, points=rows)


if __name__ == "__main__":
    child.main(sys.argv[1:], {KIND: replayed})
