"""Measures curves of two engines with AI Configurator in a worker process: the start of the planner's engine models.

Grids and arrays equal the thorough profiler's (planner.md, b.4), so that both kinds of profile have one reader.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from aiconfigurator.sdk.backends.factory import get_backend
from aiconfigurator.sdk.errors import is_expected_cli_error
from aiconfigurator.sdk.memory import estimate_kv_cache
from aiconfigurator.sdk.models import get_model
from aiconfigurator.sdk.predict import predict_disagg_worker
from dynamo_shared.api.engines import BACKENDS

from dynamo_profiler.profiling.objective import DISAGG
from dynamo_profiler.profiling.simulation.sweep import admit, disaggregated, memory_of
from dynamo_profiler.profiling.simulation.wire import Curves, JobResult, JobStatus, ReportProgress

Arrays = dict[str, list[float]]

#: Names of the files in the thorough profiler's ConfigMap.
PREFILL_FILE, DECODE_FILE = "prefill_raw_data.json", "decode_raw_data.json"
#: Shortest prompt, and tokens reserved for answers, like in the thorough profiler.
_SHORTEST, _RESERVED = 100, 500
#: Length of answers while decoding is measured, tokens.
_DECODE_OSL = 500
#: Largest number of sequences of one decode engine in each data-parallel rank.
_MOST_SEQUENCES = 512
#: Correction of latencies, equal to AI Configurator's in sweeps of disaggregated engines.
_CORRECTION = {"prefill": 1.1, "decode": 1.08}


def measure(job: Curves, report: ReportProgress) -> JobResult:
    """Both curves as arrays by file; UNSUPPORTED if there are no figures for one of the engines."""
    try:
        admit(job.model)
        engines = _Engines(job)
        prefill = _prefill(job, engines, report)
        with memory_of(engines.database, job.vram_mib):
            held = _kv_tokens(job, engines.version)
        decode = _decode(job, engines, held, report)
    except Exception as error:
        outcome = JobStatus.UNSUPPORTED if is_expected_cli_error(error) else JobStatus.BROKEN
        return JobResult(outcome=outcome, message=f"{type(error).__name__}: {error}"[:1000])
    return JobResult(outcome=JobStatus.FEASIBLE, curves={PREFILL_FILE: prefill, DECODE_FILE: decode})


class _Engines:
    """Both engines, built once, so that an estimate takes milliseconds. Follows the code of AI Configurator's sweeps."""

    def __init__(self, job: Curves) -> None:
        self._task = disaggregated(job, serving_mode=DISAGG, osl=job.osl, database_mode=job.database)
        self.version = self._task.prefill_backend_version
        self.database = self._task._load_database(job.system, job.backend, self.version)
        self._backend = get_backend(job.backend)
        self._models = {
            "prefill": self._model(job, "prefill", job.prefill),
            "decode": self._model(job, "decode", job.decode),
        }

    def estimate(self, role: str, *, isl: int, osl: int, batch: int) -> Mapping[str, float]:
        """One step of an engine: ttft of prompts and tpot of answers, ms."""
        runtime = replace(self._task.build_runtime_config(), isl=isl, osl=osl, batch_size=batch)
        summary = predict_disagg_worker(
            model=self._models[role],
            backend=self._backend,
            database=self.database,
            runtime_config=runtime,
            role=role,
            latency_correction=_CORRECTION[role],
        )
        row: Mapping[str, float] = summary.get_summary_df().iloc[0].to_dict()
        return row

    def _model(self, job: Curves, role: str, size: Mapping[str, int]) -> Any:
        parallel = (size["tp"], size["pp"], size["dp"], size["moe_tp"], size["moe_ep"], 1)
        config = replace(
            self._task._model_config_factory(role)(parallel),
            tp_size=size["tp"],
            pp_size=size["pp"],
            attention_dp_size=size["dp"],
            moe_tp_size=size["moe_tp"],
            moe_ep_size=size["moe_ep"],
            cp_size=1,
        )
        return get_model(model_path=job.model, model_config=config, backend_name=job.backend)


def _prefill(job: Curves, engines: _Engines, report: ReportProgress) -> Arrays:
    """One prompt at a time in each data-parallel rank. Tokens, milliseconds, tokens per second per GPU.

    ValueError if there are no times.
    """
    arrays: Arrays = {"prefill_isl": [], "prefill_ttft": [], "prefill_thpt_per_gpu": []}
    report("prefill", "prompts of several lengths")
    for isl in _steps(_SHORTEST, job.max_context - _RESERVED, job.prefill_points):
        ttft = engines.estimate("prefill", isl=isl, osl=2, batch=1)["ttft"]
        if not _is_time(ttft):
            continue
        arrays["prefill_isl"].append(isl)
        arrays["prefill_ttft"].append(round(ttft, 3))
        arrays["prefill_thpt_per_gpu"].append(round(job.prefill["dp"] * isl / ttft * 1000 / _gpus(job.prefill), 3))
    if not arrays["prefill_isl"]:
        raise ValueError("AI Configurator has no times of prompts")
    return arrays


def _decode(job: Curves, engines: _Engines, most: int, report: ReportProgress) -> Arrays:
    """Sequences of several lengths, from one to the capacity of the KV cache. Share of the cache, tokens, milliseconds.

    ValueError if there are no times.
    """
    arrays: Arrays = {"x_kv_usage": [], "y_context_length": [], "z_itl": [], "z_thpt_per_gpu": []}
    ranks = job.decode["dp"]
    report("decode", "sequences of several lengths, from one to the capacity of the KV cache")
    for isl in _steps(_SHORTEST, job.max_context - _RESERVED, job.decode_points):
        context = isl + _DECODE_OSL / 2
        held = int(most / (isl + _DECODE_OSL) / ranks)
        for batch in _steps(1, max(1, min(held, _MOST_SEQUENCES)), job.decode_points):
            itl = engines.estimate("decode", isl=isl, osl=_DECODE_OSL, batch=batch)["tpot"]
            if not _is_time(itl):
                continue
            arrays["x_kv_usage"].append(round(min(1.0, batch * ranks * context / most), 6))
            arrays["y_context_length"].append(context)
            arrays["z_itl"].append(round(itl, 3))
            arrays["z_thpt_per_gpu"].append(round(batch * ranks * 1000 / itl / _gpus(job.decode), 3))
    if not arrays["z_itl"]:
        raise ValueError("AI Configurator has no times of answers")
    arrays["max_kv_tokens"] = [most]
    return arrays


def _is_time(milliseconds: float) -> bool:
    """Whether this is a time: AI Configurator may have none for some lengths, and the planner refuses other numbers."""
    return isfinite(milliseconds) and milliseconds > 0


def _kv_tokens(job: Curves, version: str | None) -> int:
    """KV cache of one decode engine with all data-parallel ranks, tokens."""
    kind, share = BACKENDS[job.backend].memory
    estimate = estimate_kv_cache(
        job.model,
        job.system,
        job.backend,
        version,
        max_num_tokens=_MOST_SEQUENCES,
        max_batch_size=_MOST_SEQUENCES,
        memory_fraction_kind=kind,
        memory_fraction_value=share,
        tp_size=job.decode["tp"],
        pp_size=job.decode["pp"],
        attention_dp_size=job.decode["dp"],
        moe_tp_size=job.decode["moe_tp"],
        moe_ep_size=job.decode["moe_ep"],
    )
    return int(estimate["total_kv_size_tokens"]) * job.decode["dp"]


def _gpus(engine: Mapping[str, int]) -> int:
    return engine["tp"] * engine["pp"] * engine["dp"]


def _steps(first: int, last: int, count: int) -> list[int]:
    """About `count` distinct integers from first to last, evenly distributed."""
    if last <= first or count < 2:
        return [first]
    return sorted({first + round(step * (last - first) / (count - 1)) for step in range(count)})
