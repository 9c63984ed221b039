"""A measured profile of the engines of a graph: how long prompts take, and how long a token takes next to others."""

from __future__ import annotations

from dataclasses import dataclass


class ProfileError(ValueError):
    """A profile that cannot be used; the message says which file and key, what is wrong, and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPoint:
    """One prompt alone on an engine."""

    isl: float
    """tokens"""
    ttft: float
    """milliseconds"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePoint:
    """One iteration of an engine that decodes `batch` sequences of `context` tokens each."""

    context: float
    """mean tokens of a sequence"""
    kv_tokens: float
    """tokens of all sequences in the KV cache"""
    itl: float
    """milliseconds"""

    @property
    def batch(self) -> float:
        """Sequences, at least one."""
        return max(1.0, round(self.kv_tokens / self.context))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGpus:
    """GPUs of the engines of a graph: which row counts in a file that holds several engines. None: not known."""

    prefill: int | None = None
    decode: int | None = None


ANY_ENGINE = EngineGpus()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was measured, in order of length; either part may be missing, and then it is empty."""

    prefill: tuple[PrefillPoint, ...] = ()
    decode: tuple[DecodePoint, ...] = ()
    max_kv_tokens: int | None = None
    """KV cache of one decode engine, tokens"""
    dropped: int = 0
    """points that had no number for their latency"""
    source: str = ""

    def joined(self, other: Profile) -> Profile:
        """Both parts of two files."""
        return Profile(
            prefill=tuple(sorted(self.prefill + other.prefill, key=lambda point: (point.isl, point.ttft))),
            decode=tuple(
                sorted(self.decode + other.decode, key=lambda point: (point.context, point.kv_tokens, point.itl))
            ),
            max_kv_tokens=self.max_kv_tokens or other.max_kv_tokens,
            dropped=self.dropped + other.dropped,
            source=", ".join(filter(None, (self.source, other.source))),
        )

    def complete(self) -> Profile:
        """Itself; ProfileError where a part is missing that disaggregated and aggregated serving need."""
        for name, part, key in (("prefill", self.prefill, "prefill_isl"), ("decode", self.decode, "z_itl")):
            if not part:
                raise ProfileError(
                    f"{self.source or 'profile'}: no {name} points; give the {name} file of the profile, too (key {key})"
                )
        return self
