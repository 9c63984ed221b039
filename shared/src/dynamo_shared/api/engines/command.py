"""The specification of an engine, and the command that starts it."""

from dataclasses import dataclass, field
from enum import StrEnum

from dynamo_shared.api.engines.engine import EngineLayout


class Role(StrEnum):
    """The role of an engine in a graph."""

    PREFILL = "prefill"
    DECODE = "decode"
    AGG = "agg"

    @property
    def disaggregated(self) -> bool:
        """Whether it serves only prefill or only decode."""
        return self is not Role.AGG


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """An engine to run."""

    role: Role
    engine: EngineLayout
    model: str
    """model name in requests"""
    path: str
    """location of the weights: the model name, or a folder"""
    isl: int
    """prompt length in tokens for which the batch size was chosen"""
    latent: bool = False
    """whether attention uses a compressed cache (MLA), whose kernels need larger blocks"""
    longest: int | None = None
    """limit of the tokens of a sequence, if the cache has less space than the model's context length needs"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Command, arguments and environment of an engine's container."""

    command: tuple[str, ...]
    args: tuple[str, ...]
    working_dir: str | None = None
    env: dict[str, str] = field(default_factory=dict)


def rounded_up(tokens: int) -> int:
    """The number rounded up to a multiple of 256, so that small changes of a workload do not change flags."""
    return -(-tokens // 256) * 256
