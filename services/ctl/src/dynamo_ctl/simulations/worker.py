"""A worker process of dynadmin: the jobs of the profiler's worker processes, and the planner's replays.

Started as `python -m dynamo_ctl.simulations.worker MEMORY_MIB NICENESS`, like the profiler's
(dynamo_profiler.profiling.simulation.child).
"""

import sys
from typing import Any

from dynamo_planner.replay.job import KIND, Replays
from dynamo_profiler.profiling.simulation import child
from dynamo_profiler.profiling.simulation.wire import JobResult, JobStatus, ReportProgress

COMMAND = (sys.executable, "-m", "dynamo_ctl.simulations.worker")


def replayed(given: dict[str, Any], report: ReportProgress) -> JobResult:
    """A row for each configuration. INFEASIBLE if the traffic has no request."""
    # The import takes half a second, and sweeps do not need it.
    from dynamo_planner.replay.rows import replay

    rows = replay(Replays(**given), report)
    if not rows:
        return JobResult(outcome=JobStatus.INFEASIBLE, message="no request arrived in this time")
    return JobResult(outcome=JobStatus.FEASIBLE, points=rows)


if __name__ == "__main__":
    child.main(sys.argv[1:], {KIND: replayed})
