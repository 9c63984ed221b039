"""The inference engines, in one table: what rendering, validation, conversion and the planner know of each.

The word of a backend is also a value of enumerations of the API, which are published; a test holds these to the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dynamo_shared.api.engines import sglang, trtllm, vllm
from dynamo_shared.api.engines.command import Command, EngineSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTraits:
    """What an engine needs of its pods, and makes possible; the defaults are those of an engine that is not known."""

    compilation_cache_path: str = ""
    """where it keeps what it compiles; "" where the user must say"""
    leader_starts_last: bool = False
    """whether a leader may start only when its workers have"""
    shares_memory_between_pods: bool = False
    """whether engines in several pods can share the memory of their GPUs"""
    fails_over: bool = False
    """whether an engine can wait, with its weights loaded, for another one to fail"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFacts:
    """What distinguishes one engine from the others."""

    command: Callable[[EngineSpec], Command]
    """from sizes to flags"""
    runtime: str
    """last part of its image's name"""
    memory: tuple[str, float]
    """share of a GPU's memory that it takes by default: of all of it (`of_total`), or of what is free (`of_free`)"""
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

#: The Python module that starts an engine, as a regular expression whose group is the backend.
MODULE = rf"dynamo\.({'|'.join(BACKENDS)})"

#: The backends in a sentence.
CHOICE = " or ".join(", ".join(BACKENDS).rsplit(", ", 1))
