"""Reads a profile: NPZ files of Dynamo's profiler and of its mocker, and the same arrays as JSON (planner.md, section
b.1).

The input is bytes: reading files is outside of the core. Separate from the types, because numpy takes 50 MiB, which a
planner without profiles saves.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import ReadLimits

from dynamo_planner.core.profile import ANY_ENGINE, DecodePoint, EngineGpus, PrefillPoint, Profile, ProfileError

Array = npt.NDArray[np.float64]

PREFILL_LENGTH = ("prefill_isl",)
PREFILL_TTFT = ("prefill_ttft", "prefill_ttft_ms")
DECODE_USAGE = ("x_kv_usage",)
DECODE_CONTEXT = ("y_context_length", "decode_context_length")
DECODE_TOKENS = ("decode_active_kv_tokens",)
DECODE_ITL = ("z_itl", "decode_itl")
MAX_KV = ("max_kv_tokens",)
PARALLEL = ("tp", "pp", "dp")
"""Sizes of an engine; their product is its GPUs."""

KV_USAGE_LIMIT = 1.05
"""Some profiles count waiting prompts, so usage may slightly exceed 1; a value such as 35 is a percentage, which is an
error.
"""

SHORTEST_MS, LARGEST = 1e-6, 1e12
"""Limits of latencies in milliseconds, and of numbers of tokens: far from real values, and quotients of them are numbers.
"""
MOST_VALUES = 20_000
"""Values of an array, which covers several engines."""
MOST_POINTS = 2_000
"""Points of one engine. Profiles have some hundreds; a fit to ten times as many takes most of a minute."""
MOST_SHOWN = 16
"""Engines of a file that a message lists."""
_FILE = ReadLimits(3 << 19, 250_000, 8)


def from_npz(data: bytes, source: str, gpus: EngineGpus = ANY_ENGINE) -> Profile:
    """The profile in an NPZ file: prefill, decode or both; `source` names it in errors."""
    try:
        # Pickles would execute code of the file's author, and profiles do not need them.
        with np.lib.npyio.NpzFile(io.BytesIO(data), allow_pickle=False) as arrays:
            content = {key: arrays[key] for key in arrays.files if key in _KEYS}
    except Exception as error:
        # numpy, zipfile and the decompression may raise different exceptions for a damaged file.
        raise ProfileError(f"{source}: not an NPZ file of arrays: {error}") from error
    return from_arrays(content, source, gpus)


def from_json(text: str | bytes, source: str, gpus: EngineGpus = ANY_ENGINE) -> Profile:
    """The profile in a JSON object of lists, such as prefill_raw_data.json and decode_raw_data.json."""
    try:
        content = json_text.decode(text, _FILE)
    except json_text.InvalidJson as error:
        raise ProfileError(f"{source}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ProfileError(
            f"{source}: a JSON {type(content).__name__}; a profile is an object of lists, such as {_LISTS}"
        )
    return from_arrays(content, source, gpus)


def from_arrays(arrays: Mapping[str, Any], source: str, gpus: EngineGpus = ANY_ENGINE) -> Profile:
    """The profile in arrays by name; ProfileError if they are inconsistent or invalid.

    From arrays with a row per engine (sizes in tp, pp and dp), the engine with as many GPUs as the graph's is selected.
    """
    table = _ArrayTable(_one_engine(arrays, source, gpus), source)
    profile = Profile(source=source)
    if table.has(PREFILL_LENGTH) or table.has(PREFILL_TTFT):
        profile = profile.joined(_prefill(table))
    if table.has(DECODE_ITL):
        profile = profile.joined(_decode(table))
    for role, points in (("prefill", profile.prefill), ("decode", profile.decode)):
        if len(points) > MOST_POINTS:
            raise ProfileError(
                f"{source}: {len(points)} points of one {role} engine, but {MOST_POINTS} at most are allowed; remove some"
            )
    if not profile.prefill and not profile.decode:
        if profile.dropped:
            raise ProfileError(f"{source}: no point has a number for its latency")
        raise ProfileError(f"{source}: contains no profile; known arrays are {_LISTS}")
    return replace(profile, source=source)


def _one_engine(arrays: Mapping[str, Any], source: str, gpus: EngineGpus) -> Mapping[str, Any]:
    """The row of the graph's engine, if arrays have several."""
    sizes = _ArrayTable(arrays, source)
    columns = {key: sizes.raw((key,)).ravel() for key in PARALLEL if key in arrays}
    rows = max((column.size for column in columns.values()), default=1)
    if rows < 2:
        return arrays
    for key, column in columns.items():
        if column.size != rows:
            raise ProfileError(
                f"{source}: {key} has {column.size} values, but others of {', '.join(PARALLEL)} have {rows}"
            )
    engines = np.prod(list(columns.values()), axis=0)
    role = "prefill" if sizes.has(PREFILL_LENGTH) or sizes.has(PREFILL_TTFT) else "decode"
    own = gpus.prefill if role == "prefill" else gpus.decode
    available = ", ".join(f"{count:g}" for count in engines[:MOST_SHOWN])
    if own is None:
        raise ProfileError(f"{source}: has engines of {available} GPUs; set {role}_engine_num_gpu to that of the graph")
    if own not in engines:
        raise ProfileError(f"{source}: has engines of {available} GPUs, but the graph's {role} engines have {own}")
    row = int(np.argmax(engines == own))
    # Arrays with one value for all engines stay unchanged.
    return {key: each[row] if _rows(each) == rows else each for key, each in arrays.items()}


def _rows(array: Any) -> int:
    """Length along the first axis; 0 for scalars."""
    return len(array) if isinstance(array, list) or (isinstance(array, np.ndarray) and array.ndim > 0) else 0


def _prefill(table: _ArrayTable) -> Profile:
    lengths = table.column(PREFILL_LENGTH)
    times = table.column(PREFILL_TTFT, like=lengths)
    kept = np.isfinite(times)
    table.check(lengths[kept] >= 1, PREFILL_LENGTH, "below 1; prompts have at least one token")
    table.check(lengths[kept] <= LARGEST, PREFILL_LENGTH, f"above {LARGEST:g}; the unit is tokens")
    table.check(times[kept] > 0, PREFILL_TTFT, "not above 0; the unit is milliseconds")
    table.check_latencies(times[kept], PREFILL_TTFT)
    points = tuple(
        PrefillPoint(isl=float(isl), ttft=float(ttft)) for isl, ttft in zip(lengths[kept], times[kept], strict=True)
    )
    return Profile(prefill=points, dropped=int((~kept).sum()))


def _decode(table: _ArrayTable) -> Profile:
    most = table.scalar(MAX_KV)
    if table.has(DECODE_TOKENS):
        tokens, contexts, times = _gridded(table)
    else:
        usage = table.column(DECODE_USAGE)
        contexts = table.column(DECODE_CONTEXT, like=usage)
        times = table.column(DECODE_ITL, like=usage)
        table.check(
            (usage >= 0) & (usage <= KV_USAGE_LIMIT),
            DECODE_USAGE,
            "not from 0 to 1; the value is a share of the KV cache",
        )
        if most is None:
            raise ProfileError(
                f"{table.source}: {DECODE_USAGE[0]} without {MAX_KV[0]}, the number of tokens of the KV cache"
            )
        tokens = np.round(usage * most)
    kept = np.isfinite(times)
    table.check(contexts[kept] >= 1, DECODE_CONTEXT, "below 1; the unit is tokens")
    table.check(contexts[kept] <= LARGEST, DECODE_CONTEXT, f"above {LARGEST:g}; the unit is tokens")
    table.check(times[kept] > 0, DECODE_ITL, "not above 0; the unit is milliseconds")
    table.check_latencies(times[kept], DECODE_ITL)
    points = tuple(
        # A cache usage that rounds to 0 still holds the one sequence that was measured.
        DecodePoint(context=float(context), kv_tokens=float(max(kv, context)), itl=float(itl))
        for kv, context, itl in zip(tokens[kept], contexts[kept], times[kept], strict=True)
    )
    measured = max((point.kv_tokens for point in points), default=0.0)
    return Profile(decode=points, max_kv_tokens=int(most or measured) or None, dropped=int((~kept).sum()))


def _gridded(table: _ArrayTable) -> tuple[Array, Array, Array]:
    """The mocker's arrays as columns: a grid of tokens by context, or one value per point."""
    tokens, contexts, times = table.raw(DECODE_TOKENS), table.raw(DECODE_CONTEXT), table.raw(DECODE_ITL)
    if times.shape == (tokens.size, contexts.size):
        tokens, contexts = np.meshgrid(tokens.ravel(), contexts.ravel(), indexing="ij")
    elif times.ndim == 2 and min(times.shape) > 1:
        raise ProfileError(
            f"{table.source}: {DECODE_ITL[1]} is {times.shape[0]} x {times.shape[1]}; it must be "
            f"{tokens.size} x {contexts.size}, {DECODE_TOKENS[0]} by {DECODE_CONTEXT[1]}"
        )
    tokens, contexts, times = tokens.ravel(), contexts.ravel(), times.ravel()
    table.same_length(DECODE_CONTEXT, contexts, tokens)
    table.same_length(DECODE_ITL, times, tokens)
    table.check((tokens >= 0) & (tokens <= LARGEST), DECODE_TOKENS, f"not from 0 to {LARGEST:g}; the unit is tokens")
    return tokens, contexts, times


class _ArrayTable:
    """Arrays by any of their names; errors name file and key."""

    def __init__(self, arrays: Mapping[str, Any], source: str) -> None:
        self._arrays = arrays
        self.source = source

    def has(self, names: Sequence[str]) -> bool:
        return any(name in self._arrays for name in names)

    def raw(self, names: Sequence[str]) -> Array:
        for name in names:
            if name in self._arrays:
                try:
                    # JSON has no NaN; null represents it.
                    values = np.asarray(self._arrays[name], dtype=np.float64)
                except (TypeError, ValueError, OverflowError) as error:
                    raise ProfileError(f"{self.source}: {name} has a value that is not a number: {error}") from error
                if values.size > MOST_VALUES:
                    raise ProfileError(
                        f"{self.source}: {name} has {values.size} values, but {MOST_VALUES} at most are allowed"
                    )
                return values
        raise ProfileError(f"{self.source}: no {' or '.join(names)}, which the other arrays need")

    def column(self, names: Sequence[str], like: Array | None = None) -> Array:
        values = self.raw(names).ravel()
        if like is not None:
            self.same_length(names, values, like)
        elif not np.isfinite(values).all():
            raise ProfileError(f"{self.source}: {names[0]} has values that are not finite numbers")
        return values

    def scalar(self, names: Sequence[str]) -> float | None:
        if not self.has(names):
            return None
        values = self.raw(names).ravel()
        if not values.size or not np.isfinite(values[0]) or not 1 <= values[0] <= LARGEST:
            raise ProfileError(
                f"{self.source}: {names[0]} is {values[:3].tolist()}; it must be a number of tokens, from 1 to {LARGEST:g}"
            )
        return float(values[0])

    def same_length(self, names: Sequence[str], values: Array, like: Array) -> None:
        if values.size != like.size:
            raise ProfileError(
                f"{self.source}: {names[0]} has {values.size} values, but the matching array has {like.size}"
            )

    def check_latencies(self, milliseconds: Array, names: Sequence[str]) -> None:
        in_range = (milliseconds >= SHORTEST_MS) & (milliseconds <= LARGEST)
        self.check(in_range, names, f"not from {SHORTEST_MS:g} to {LARGEST:g}; the unit is milliseconds")

    def check(self, right: npt.NDArray[np.bool_], names: Sequence[str], wrong: str) -> None:
        if not right.all():
            name = next(name for name in names if name in self._arrays)
            raise ProfileError(f"{self.source}: value {int(np.argmin(right)) + 1} of {name} is {wrong}")


_KEYS = frozenset(
    (*PREFILL_LENGTH, *PREFILL_TTFT, *DECODE_USAGE, *DECODE_CONTEXT, *DECODE_TOKENS, *DECODE_ITL, *MAX_KV, *PARALLEL)
)
_LISTS = "prefill_isl with prefill_ttft, or x_kv_usage with y_context_length, z_itl and max_kv_tokens"
