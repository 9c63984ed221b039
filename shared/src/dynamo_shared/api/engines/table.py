"""The table of inference engines: what rendering, validation, conversion and the planner need to know of each.

The API publishes the names of backends as enums; a test compares these with the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dynamo_shared.api.engines import sglang, trtllm, vllm
from dynamo_shared.api.engines.command import Command, EngineSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTraits:
    """Requirements and capabilities of an engine for its pods; the defaults are those of unknown engines."""

    compilation_cache_path: str = ""
    """folder of compiled kernels; "" if the user must configure it"""
    leader_starts_last: bool = False
    """whether a leader must start after its workers"""
    shares_memory_between_pods: bool = False
    """whether engines in different pods can share GPU memory"""
    fails_over: bool = False
    """whether an engine can stand by, with loaded weights, for the failure of another one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFacts:
    """The properties of an engine."""

    command: Callable[[EngineSpec], Command]
    """the command for a specification"""
    runtime: str
    """last part of the image's name"""
    memory: tuple[str, float]
    """default fraction of GPU memory: of the total (`of_total`) or of the free memory (`of_free`)"""
    pods: PodTraits = PodTraits()


BACKENDS: Mapping[str, BackendFacts] = {
    "vllm": BackendFacts(
        command=vllm.command,
        runtime="vllm-runtime",
        memory=("of_total", 0.90),
        pods=PodTraits(compilation_cache_path="/root/.cache/vllm", shares_memory_between_pods=True, fails_over=True),
    ),
    "sglang": BackendFacts(command=sglang.command, runtime="sglang-runtime", memory=("of_total", 0.88)),
    "trtllm": BackendFacts(
        command=trtllm.command,
        runtime="tensorrtllm-runtime",
        memory=("of_free", 0.90),
        pods=PodTraits(leader_starts_last=True),
    ),
}

#: Regular expression of the Python module that starts an engine; its group is the backend.
MODULE = rf"dynamo\.({'|'.join(BACKENDS)})"

#: The names of the backends, for a sentence.
CHOICE = " or ".join(", ".join(BACKENDS).rsplit(", ", 1))
