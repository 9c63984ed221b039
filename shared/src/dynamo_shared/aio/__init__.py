"""The basis of all asynchronous code: back-off, jitter, groups of tasks, shared work, fair queues, child processes.

The lowest layer: it imports nothing else of the project.
"""

from dynamo_shared.aio.backoff import Backoff, Randomness, delay, spread
from dynamo_shared.aio.joined import Joined
from dynamo_shared.aio.lanes import Gate, Lanes, Shares
from dynamo_shared.aio.offload import Offload, Pauses
from dynamo_shared.aio.processes import Process
from dynamo_shared.aio.signal import Signal
from dynamo_shared.aio.supervision import supervised
from dynamo_shared.aio.together import (
    EndedByItselfError,
    all_of,
    both,
    cancellable,
    either,
    ended,
    endless,
    merged,
    while_held,
)
from dynamo_shared.aio.turns import Turns

__all__ = [
    "Backoff",
    "EndedByItselfError",
    "Gate",
    "Joined",
    "Lanes",
    "Offload",
    "Pauses",
    "Process",
    "Randomness",
    "Shares",
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
