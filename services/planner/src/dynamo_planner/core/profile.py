"""A measured profile of a graph's engines: the time of prompts, and of tokens by batch and context."""

from __future__ import annotations

from dataclasses import dataclass


class ProfileError(ValueError):
    """An unusable profile; the message names the file and key, the problem, and the allowed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPoint:
    """One prompt, computed alone on an engine."""

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
    """GPUs of a graph's engines, which select the row in a file with several engines. None: not known."""

    prefill: int | None = None
    decode: int | None = None


ANY_ENGINE = EngineGpus()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The measurements, ordered by length; either part may be missing, and is then empty."""

    prefill: tuple[PrefillPoint, ...] = ()
    decode: tuple[DecodePoint, ...] = ()
    max_kv_tokens: int | None = None
    """KV cache of one decode engine, tokens"""
    dropped: int = 0
    """points without a number for their latency"""
    source: str = ""

    def joined(self, other: Profile) -> Profile:
        """The measurements of both profiles."""
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
        """Returns itself; ProfileError if a part that disaggregated and aggregated serving need is missing."""
        for name, part, key in (("prefill", self.prefill, "prefill_isl"), ("decode", self.decode, "z_itl")):
            if not part:
                raise ProfileError(
                    f"{self.source or 'profile'}: no {name} points; also provide the {name} file of the profile (key {key})"
                )
        return self
