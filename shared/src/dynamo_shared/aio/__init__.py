"""What all asynchronous code here stands on: back-off, jitter, tasks together, work shared by many, work in turns,
restarts of tasks, programs that it starts.

The lowest layer: it imports nothing of the project.
"""

from dynamo_shared.aio.backoff import Backoff, Randomness, delay, spread
from dynamo_shared.aio.gate import Gate
from dynamo_shared.aio.joined import Joined
from dynamo_shared.aio.merging import merged
from dynamo_shared.aio.offload import Offload
from dynamo_shared.aio.processes import Process
from dynamo_shared.aio.signal import Signal
from dynamo_shared.aio.supervision import supervised
from dynamo_shared.aio.together import EndedByItselfError, all_of, both, cancellable, either, ended, endless, while_held
from dynamo_shared.aio.turns import Turns

__all__ = [
    "Backoff",
    "EndedByItselfError",
    "Gate",
    "Joined",
    "Offload",
    "Process",
    "Randomness",
    "Signal",
    "Turns",
    "all_of",
    "both",
    "cancellable",
    "delay",
    "either",
    "ended",
    "endless",
    "merged",
    "spread",
    "supervised",
    "while_held",
]
