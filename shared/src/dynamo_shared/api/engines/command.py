"""What an engine is to do, and the command that starts it."""

from dataclasses import dataclass, field
from enum import StrEnum

from dynamo_shared.api.engines.engine import EngineLayout


class Role(StrEnum):
    """What an engine does in a graph."""

    PREFILL = "prefill"
    DECODE = "decode"
    AGG = "agg"

    @property
    def disaggregated(self) -> bool:
        """Whether it serves one side alone."""
        return self is not Role.AGG


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """An engine to run."""

    role: Role
    engine: EngineLayout
    model: str
    """name that requests call it by"""
    path: str
    """where its weights are: that name, or a folder"""
    isl: int
    """tokens of the prompts that its batches were sized for"""
    latent: bool = False
    """whether it attends to a compressed cache (MLA), whose kernels want larger blocks"""
    longest: int | None = None
    """tokens of a sequence at most, where the cache holds less than the model was made for"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What runs in an engine's container."""

    command: tuple[str, ...]
    args: tuple[str, ...]
    working_dir: str | None = None
    env: dict[str, str] = field(default_factory=dict)


def rounded_up(tokens: int) -> int:
    """The next multiple of 256, so that small changes of a workload leave flags as they are."""
    return -(-tokens // 256) * 256
