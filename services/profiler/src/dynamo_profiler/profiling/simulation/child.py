"""A worker process. Reads one job per line; writes reports of progress and one answer, one per line.

Started as `python -m dynamo_profiler.profiling.simulation.child MEMORY_MIB NICENESS`. AI Configurator prints tables on
standard output, so answers use a copy of that descriptor. The process ends when its standard input ends, so a service
that is killed leaves no process behind.
"""

import json
import os
import queue
import resource
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, BinaryIO

from dynamo_profiler.profiling.simulation.wire import Curves, JobResult, JobStatus, ReportProgress, SimulationSweep

#: Factor above the limit that the service enforces by measuring: covers memory growth between two measurements.
_HARD_FACTOR = 1.5
_MIB = 1024 * 1024
Handler = Callable[[dict[str, Any], ReportProgress], JobResult]


def main(arguments: list[str], more: Mapping[str, Handler] = MappingProxyType({})) -> None:
    """Serve jobs until standard input ends. `more`: handlers by name for kinds of jobs of other services."""
    memory_mib, niceness = int(arguments[0]), int(arguments[1])
    os.nice(niceness)
    hard = int(memory_mib * _HARD_FACTOR * _MIB)
    # Limits data, not address space: libraries reserve far more address space than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    # The slow imports run before the first job: the service counts a process as ready after them.
    from dynamo_profiler.profiling.simulation import curves, sweep  # noqa: PLC0415
    from dynamo_profiler.profiling.simulation.speedup import tune  # noqa: PLC0415

    tune()
    _send(out, {"ready": os.getpid()})
    while True:
        given = jobs.get()
        started = time.monotonic()

        def report(role: str, sentence: str) -> None:
            _send(out, {"role": role, "progress": sentence})

        try:
            kind = given.pop("job")
            if kind in more:
                answer = more[kind](given, report)
            elif kind == "sweep":
                answer = sweep.sweep(SimulationSweep(**given), report)
            else:
                answer = curves.measure(Curves(**given), report)
        except MemoryError:
            answer = JobResult(outcome=JobStatus.BROKEN, message=f"needs more memory than {memory_mib} MiB")
        except Exception as error:
            answer = JobResult(outcome=JobStatus.BROKEN, message=f"{type(error).__name__}: {error}"[:1000])
        _send(out, replace(answer, seconds=round(time.monotonic() - started, 3)).as_message())


def _listen(jobs: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin.buffer:
        jobs.put(json.loads(line))
    # The service has ended, or dropped this process: nothing reads its results.
    os._exit(0)


def _send(out: BinaryIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
